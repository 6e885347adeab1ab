"""`devlint server` as an editor meets it, over its standard streams."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import unquote, urlparse

from lsprotocol import types

from devlint.auditor.running import storage
from devlint.observation import Observation, Sight
from devlint.record import Process, Record
from devlint.rules.registry import registry
from tests.server.client import Editor, applied, editor

BAD = """\
import torch


def move(x: torch.Tensor, device):
    print("😀é"); x.to(device)
    return x
"""
GOOD = BAD.replace("; x.to", "; x = x.to")
DROPPED = ["DVL102"]


def played(folder: Path | None, scene: Callable[[Editor], Awaitable[None]], **capabilities: object) -> None:
    """Play a scene in an editor."""

    async def play() -> None:
        async with editor(folder, types.ClientCapabilities(**capabilities)) as client:  # type: ignore[arg-type]  # by name
            await scene(client)

    asyncio.run(play())


def test_findings_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "é a.py"
    path.write_text(BAD, encoding="utf-8")

    async def scene(client: Editor) -> None:
        uri = await client.open(path)
        assert await client.codes(uri) == DROPPED
        (found,) = client.found[uri].diagnostics
        # 😀 is two units of UTF-16
        assert (found.range.start, found.range.end) == (types.Position(4, 18), types.Position(4, 30))
        assert found.severity is types.DiagnosticSeverity.Error
        assert found.source == "devlint"
        assert found.message.startswith("`x.to(device)` returns the moved tensor")
        assert found.message.endswith(
            "\nhelp: assign the result: `x = x.to(device)`; or delete the line, if all works as it is"
        )
        (place,) = found.related_information or ()
        assert (place.location.uri, place.location.range.start) == (uri, types.Position(3, 9))
        assert place.message == "`x` is an argument here"
        assert found.code_description is not None
        page = Path(unquote(urlparse(found.code_description.href).path))
        assert page.read_text(encoding="utf-8").startswith("# DVL102: discarded-move\n\n")
        assert registry()["DVL102"].documentation() in page.read_text(encoding="utf-8")
        pages.append(page)

    pages: list[Path] = []
    played(tmp_path, scene)
    assert not pages[0].parent.exists()


def test_tags_and_severities(tmp_path: Path) -> None:
    text = (
        "import torch\n\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\nx = torch.cuda.FloatTensor(3)\n\n"
        "def f(sizes, device):\n    for n in sizes:\n        yield torch.zeros(n, n).to(device)\n"
        "z = 1  # devlint: ignore[DVL101]\n"
    )

    async def scene(client: Editor) -> None:
        uri = await client.open(tmp_path / "a.py", text)
        await client.codes(uri)
        found = {str(one.code): one for one in client.found[uri].diagnostics}
        assert found["DVL901"].tags == (types.DiagnosticTag.Unnecessary,)
        (deprecated,) = (one for code, one in found.items() if code.startswith("DVL7"))
        assert deprecated.tags == (types.DiagnosticTag.Deprecated,)
        assert found["DVL203"].severity is types.DiagnosticSeverity.Information
        assert found["DVL901"].severity is types.DiagnosticSeverity.Warning

    played(tmp_path, scene)


def test_as_it_is_typed(tmp_path: Path) -> None:
    """What counts is the text in the editor, once nobody types any more; the file on the disk may be another."""
    path = tmp_path / "a.py"
    path.write_text(GOOD, encoding="utf-8")

    async def scene(client: Editor) -> None:
        uri = await client.open(path)
        assert await client.codes(uri, 1) == []
        told: list[int | None] = []
        for end in range(len(BAD) - 20, len(BAD) + 1):
            version = client.type(uri, BAD[:end])
        while True:
            client.news.clear()
            told.append(client.found[uri].version)
            if told[-1] == version:
                break
            await asyncio.wait_for(client.news.wait(), 30)
        assert await client.codes(uri) == DROPPED
        assert len(set(told)) <= 3
        assert await client.codes(uri, client.type(uri, GOOD)) == []
        client.type(uri, BAD)
        client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
        await client.until(lambda: client.found[uri].version == version + 2)
        assert await client.codes(uri) == DROPPED
        client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
        await client.until(lambda: client.found[uri].diagnostics in ((), []))

    played(tmp_path, scene)
    assert path.read_text(encoding="utf-8") == GOOD


def test_a_text_that_is_no_python_yet(tmp_path: Path) -> None:
    async def scene(client: Editor) -> None:
        uri = await client.open(tmp_path / "a.py", "import torch\nx = torch.ones(\n")
        assert await client.codes(uri) == ["DVL900"]
        (found,) = client.found[uri].diagnostics
        assert found.range == types.Range(types.Position(1, 14), types.Position(1, 15))
        assert await client.hover(uri, 1, 0) is None
        assert await client.actions(uri, 1, 14) == {}
        assert await client.codes(uri, client.type(uri, BAD)) == DROPPED
        assert await client.codes(uri, client.type(uri, "x = '\0'\n")) == ["DVL900"]
        assert await client.codes(uri, client.type(uri, "")) == []
        other = await client.open(tmp_path / "b.txt", BAD, language="plaintext")
        assert await client.actions(other, 4, 18) == {}
        assert other not in client.found

    played(tmp_path, scene)


def test_quick_fixes(tmp_path: Path) -> None:
    text = BAD + "\n\ndef make(sizes, device):\n    for n in sizes:\n        yield torch.zeros(n).to(device)\r\n"

    async def scene(client: Editor) -> None:
        uri = await client.open(tmp_path / "a.py", text)
        await client.codes(uri)
        found = await client.actions(uri, 4, 20)
        unsafe = found["DVL102: Assign the result to `x` (unsafe)"]
        assert (unsafe.kind, unsafe.is_preferred) == (types.CodeActionKind.QuickFix, None)
        assert [one.code for one in unsafe.diagnostics or ()] == DROPPED
        assert unsafe.edit is not None
        assert unsafe.edit.changes is not None
        assert applied(text, [*unsafe.edit.changes[uri]]) == text.replace("; x.to", "; x = x.to")
        silent = found["DVL102: Suppress here"]
        assert silent.edit is not None
        assert silent.edit.changes is not None
        after = applied(text, [*silent.edit.changes[uri]])
        assert after == text.replace("x.to(device)\n", "x.to(device)  # devlint: ignore[DVL102]\n")
        assert "DVL102" not in await client.codes(uri, client.type(uri, after))
        assert [title for title in await client.actions(uri, 0) if "DVL" in title] == []

        all_safe = await client.actions(uri, 0, only=[types.CodeActionKind.SourceFixAll])
        (action,) = all_safe.values()
        assert action.kind == "source.fixAll.devlint"
        assert action.edit is not None
        assert action.edit.changes is not None
        fixed = applied(after, [*action.edit.changes[uri]])
        assert fixed == after.replace("torch.zeros(n).to(device)", "torch.zeros(n, device=device)")
        await client.codes(uri, client.type(uri, fixed))
        assert await client.actions(uri, 0, only=["source"]) == {}
        assert await client.actions(uri, 4, 20, only=["refactor"]) == {}

    played(tmp_path, scene)


def test_a_safe_fix_is_preferred_and_holds_for_its_version(tmp_path: Path) -> None:
    text = "import torch\n\n\ndef make(sizes, device):\n    for n in sizes:\n        yield torch.zeros(n).to(device)\n"

    async def scene(client: Editor) -> None:
        uri = await client.open(tmp_path / "a.py", text)
        await client.codes(uri)
        found = [one for one in (await client.actions(uri, 5, 16)).values() if one.is_preferred]
        assert len(found) == 1
        assert found[0].edit is not None
        (change,) = found[0].edit.document_changes or ()
        assert isinstance(change, types.TextDocumentEdit)
        assert (change.text_document.uri, change.text_document.version) == (uri, 1)

    workspace = types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
    )
    played(tmp_path, scene, workspace=workspace)


def test_hover_tells_what_a_run_has_seen(tmp_path: Path) -> None:
    text = "import torch\n\n\ndef f(values):\n    return values.t() + torch.ones(3)\n"
    file = tmp_path / "a.py"
    file.write_text(text, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.devlint]\nevidence = "run.json"\n', encoding="utf-8")
    values = Sight(name="values", kinds=("tensor",), devices=("cuda:0",), calls=40)
    seen = Observation(file=str(file), function="f", line=4, calls=40, sights=(values,))
    digests = {str(file): hashlib.sha256(file.read_bytes()).hexdigest()}
    process = Process(pid=1, device="cuda:0", observations=(seen,))
    storage.write(Record(processes=(process,), digests=digests, findings=()), str(tmp_path / "run.json"))

    async def scene(client: Editor) -> None:
        async def told() -> str:
            shown = await client.hover(uri, 4, 13)
            assert shown is not None
            assert isinstance(shown.contents, types.MarkupContent)
            return shown.contents.value

        uri = await client.open(file, text)
        assert (await told()).startswith(
            "`values` is wherever the caller keeps it; `values` was on `cuda:0` in run.json (40 calls)\n"
        )
        client.type(uri, text + "# later\n")
        assert "run.json" not in await told()

    played(tmp_path, scene)


def test_hover(tmp_path: Path) -> None:
    text = "import torch\nx = torch.zeros(3)\ny = x.cuda()\ns = '😀', y\nn = len('s')\n"

    async def scene(client: Editor) -> None:
        uri = await client.open(tmp_path / "a.py", text)
        shown = await client.hover(uri, 3, 10)
        assert shown is not None
        assert shown.range == types.Range(types.Position(3, 10), types.Position(3, 11))
        assert isinstance(shown.contents, types.MarkupContent)
        assert shown.contents.kind is types.MarkupKind.Markdown
        assert shown.contents.value == (f"`y` is a tensor on `cuda`\n\n- [line 3]({uri}#L3): moved to `cuda` here")
        assert await client.hover(uri, 4, 0) is None
        assert await client.hover(uri, 99, 0) is None
        client.type(uri, text.replace(".cuda()", ".cpu()"))
        shown = await client.hover(uri, 3, 10)
        assert shown is not None
        assert isinstance(shown.contents, types.MarkupContent)
        assert shown.contents.value.startswith("`y` is a tensor on the CPU")

    markdown = types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown])
    played(tmp_path, scene, text_document=types.TextDocumentClientCapabilities(hover=markdown))


def test_the_configuration_of_the_folder(tmp_path: Path) -> None:
    config = tmp_path / "pyproject.toml"
    config.write_text("[tool.devlint]\nignore = ['DVL102']\nexclude = ['out']\n")
    (tmp_path / "out").mkdir()

    async def scene(client: Editor) -> None:
        uri = await client.open(tmp_path / "a.py", BAD)
        assert await client.codes(uri) == []
        left_out = await client.open(tmp_path / "out" / "a.py", BAD)
        assert await client.codes(left_out) == []
        await client.until(lambda: client.registered)
        (options,) = (one.register_options for one in client.registered)
        assert "pyproject.toml" in str(options)
        config.write_text("[tool.devlint]\nseverity = { DVL102 = 'warning' }\n")
        event = types.FileEvent(config.as_uri(), types.FileChangeType.Changed)
        client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        await client.until(lambda: client.found[uri].diagnostics)
        assert client.found[uri].diagnostics[0].severity is types.DiagnosticSeverity.Warning
        config.write_text("[tool.devlint]\nignroe = []\n")
        client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        await client.until(lambda: client.messages)
        assert await client.codes(uri, client.type(uri, BAD + "\n")) == DROPPED
        assert client.messages == [
            f"devlint: {config}: unknown key 'ignroe' in [tool.devlint] (did you mean 'ignore'?)"
        ]

    watching = types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
    played(tmp_path, scene, workspace=types.WorkspaceClientCapabilities(did_change_watched_files=watching))


def test_what_is_typed_in_another_file_counts(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("import torch\n\n\ndef mask(n):\n    return torch.ones(n, n, device='cuda')\n")
    main = tmp_path / "main.py"
    main.write_text(
        "import torch\nfrom helpers import mask\n\nx = torch.ones(3, 3, device='cuda')\nprint(x * mask(3))\n"
    )

    async def scene(client: Editor) -> None:
        uri = await client.open(main)
        assert "DVL101" not in await client.codes(uri)
        helpers = await client.open(tmp_path / "helpers.py")
        await client.codes(helpers)
        client.type(helpers, "import torch\n\n\ndef mask(n):\n    return torch.ones(n, n)\n")
        assert "DVL101" in await client.codes(uri, client.type(uri, main.read_text() + "\n"))
        (found,) = [one for one in client.found[uri].diagnostics if one.code == "DVL101"]
        places = {place.location.uri: place.location.range.start.line for place in found.related_information or ()}
        assert places[helpers] == 4
        # once it is saved, those that look at it are looked at without being touched
        client.type(helpers, (tmp_path / "helpers.py").read_text())
        client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(helpers)))
        await client.until(lambda: "DVL101" not in [one.code for one in client.found[uri].diagnostics])

    played(tmp_path, scene)


def test_without_a_folder_and_without_a_file() -> None:
    async def scene(client: Editor) -> None:
        document = types.TextDocumentItem("untitled:Untitled-1", "python", 1, BAD)
        client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        assert await client.codes("untitled:Untitled-1") == DROPPED
        assert "DVL102: Suppress here" in await client.actions("untitled:Untitled-1", 4, 18)
        shown = await client.hover("untitled:Untitled-1", 4, 18)
        assert shown is not None
        assert isinstance(shown.contents, types.MarkupContent)
        assert shown.contents.kind is types.MarkupKind.PlainText
        assert shown.contents.value == "`x` is wherever the caller keeps it\n\n- line 4: `x` is an argument here"

    played(None, scene)


class TestNotebooks:
    CELLS = ("!ls\nimport torch", "x = torch.ones(3, 3)", "y = torch.ones(3, 3).cuda()\nz = x + y")

    async def opened(self, client: Editor, path: Path, *more: str) -> list[str]:
        """Open a notebook; the addresses of its cells."""
        texts = (*self.CELLS, *more)
        uris = [f"vscode-notebook-cell:{path}#{number}" for number in range(len(texts))]
        cells = [types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in uris]
        items = [types.TextDocumentItem(uri, "python", 1, text) for uri, text in zip(uris, texts, strict=True)]
        document = types.NotebookDocument(path.as_uri(), "jupyter-notebook", 1, cells)
        client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(document, items))
        return uris

    def test_findings_fixes_and_hovers(self, tmp_path: Path) -> None:
        async def scene(client: Editor) -> None:
            first, second, third, broken = await self.opened(client, tmp_path / "a.ipynb", "x = (")
            codes = await client.codes(third)
            assert "DVL101" in codes
            assert await client.codes(first) == []
            assert await client.codes(broken) == ["DVL900"]
            (found,) = [one for one in client.found[third].diagnostics if one.code == "DVL101"]
            assert found.range.start == types.Position(1, 4)
            assert second in {place.location.uri for place in found.related_information or ()}
            shown = await client.hover(third, 1, 4)
            assert shown is not None
            assert isinstance(shown.contents, types.MarkupContent)
            assert shown.contents.value == "`x` is a tensor on the CPU\n\n- cell 2, line 1: created on the CPU here"
            silent = (await client.actions(third, 1, 4))["DVL101: Suppress here"]
            assert silent.edit is not None
            assert silent.edit.changes is not None
            assert list(silent.edit.changes) == [third]
            assert applied(self.CELLS[2], [*silent.edit.changes[third]]).endswith("x + y  # devlint: ignore[DVL101]")

        played(tmp_path, scene)

    def test_cells_that_change(self, tmp_path: Path) -> None:
        async def scene(client: Editor) -> None:
            _, second, third = await self.opened(client, tmp_path / "a.ipynb")
            assert "DVL101" in await client.codes(third)
            document = types.VersionedNotebookDocumentIdentifier(2, (tmp_path / "a.ipynb").as_uri())
            end = types.Range(types.Position(0, 20), types.Position(0, 20))
            text = types.NotebookDocumentCellContentChanges(
                types.VersionedTextDocumentIdentifier(uri=second, version=2),
                [types.TextDocumentContentChangePartial(end, ".cuda()")],
            )
            change = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(text_content=[text]))
            client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(document, change))
            await client.until(lambda: client.found[second].version == 2)
            await client.until(lambda: "DVL101" not in [one.code for one in client.found[third].diagnostics])
            gone = types.NotebookDocumentCellChanges(
                structure=types.NotebookDocumentCellChangeStructure(
                    types.NotebookCellArrayChange(start=2, delete_count=1, cells=[]),
                    did_close=[types.TextDocumentIdentifier(third)],
                )
            )
            event = types.NotebookDocumentChangeEvent(cells=gone)
            client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(document, event))
            await client.until(lambda: not client.found[third].diagnostics)

        played(tmp_path, scene)


def test_the_editor_says_how_it_counts(tmp_path: Path) -> None:
    async def scene(client: Editor) -> None:
        uri = await client.open(tmp_path / "a.py", BAD)
        await client.codes(uri)
        assert client.found[uri].diagnostics[0].range.start == types.Position(4, 21)

    encodings = [types.PositionEncodingKind.Utf8, types.PositionEncodingKind.Utf16]
    played(tmp_path, scene, general=types.GeneralClientCapabilities(position_encodings=encodings))
