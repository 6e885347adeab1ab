"""The server: what the editor tells, what it asks, and when that is looked into."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from devlint._about import __version__
from devlint.check.project import view
from devlint.finding import Finding
from devlint.server import messages
from devlint.server.analysis import Analysis, all_fixed, analyze, told
from devlint.server.documents import Part, Snapshot, changed
from devlint.server.pages import RulePages
from devlint.server.protocol import Protocol

PAUSE = 0.2
"""Seconds without a change after which a text is looked at."""
_PYTHON = "python"
_WATCHED = ("**/pyproject.toml", "**/*.py")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that the editor has open."""

    content: str
    version: int | None
    language: str


class Server(LanguageServer):
    """devlint for an editor. Whatever takes time is done in one thread, one thing after the other."""

    def __init__(self) -> None:
        cells = types.NotebookDocumentFilterWithNotebook(notebook="*")
        super().__init__(
            "devlint",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
            notebook_document_sync=types.NotebookDocumentSyncOptions([cells], save=True),
            protocol_cls=Protocol,
        )
        self.finished = False
        self.pages = RulePages()
        self._texts: dict[str, _Text] = {}
        self._cells: dict[str, str] = {}
        self._analyses: dict[str, Analysis] = {}
        self._pending: dict[str, asyncio.Task[None]] = {}
        self._told: set[str] = set()
        self._worker = ThreadPoolExecutor(1, "devlint")

    def report_server_error(self, error: Exception, source: object) -> None:
        """Tell the editor's log in one line what could not be done; the work goes on."""
        text = " ".join(f"{type(error).__name__}: {error}".split())
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"devlint: {text[:500]}"))

    # -- what is open --------------------------------------------------------------------------------------------------

    def opened(self, document: types.TextDocumentItem, notebook: str = "") -> None:
        """A text is open now, as a file or as a cell of a notebook."""
        self._texts[document.uri] = _Text(document.text, document.version, document.language_id)
        if notebook:
            self._cells[document.uri] = notebook

    def edited(
        self,
        document: types.VersionedTextDocumentIdentifier,
        changes: Iterable[types.TextDocumentContentChangeEvent],
    ) -> None:
        """A text has changed; one that is not open cannot."""
        known = self._texts.get(document.uri)
        if known is not None:
            content = known.content
            for change in changes:
                content = changed(content, change, self._encoding())
            self._texts[document.uri] = _Text(content, document.version, known.language)

    def closed(self, uri: str) -> None:
        """A text is open no more."""
        self._texts.pop(uri, None)
        self._cells.pop(uri, None)
        self.publish(uri, [])

    def forget(self, uri: str) -> None:
        """A file or notebook is closed."""
        self._analyses.pop(uri, None)
        task = self._pending.pop(uri, None)
        if task is not None:
            task.cancel()

    def owner(self, uri: str) -> str:
        """The file or notebook that a text belongs to."""
        return self._cells.get(uri, uri)

    def snapshot(self, uri: str) -> Snapshot | None:
        """A file or notebook as it is now; ``None`` if it is not open or not Python."""
        notebook = self.workspace.get_notebook_document(notebook_uri=uri)
        encoding = self._encoding()
        if notebook is not None:
            cells = [
                (number, cell.document, self._texts.get(cell.document))
                for number, cell in enumerate(notebook.cells, 1)
                if cell.kind == types.NotebookCellKind.Code
            ]
        else:
            cells = [(0, uri, self._texts.get(uri))]
        parts = tuple(
            Part(address, text.content, text.version, number, encoding)
            for number, address, text in cells
            if text is not None and text.language == _PYTHON
        )
        if not parts:
            return None
        filename = _path(uri) or f"<{uri}>"
        texts = {_path(address): text.content for address, text in self._texts.items() if address not in self._cells}
        unsaved = {path: text for path, text in texts.items() if path}
        workspace = self.client_capabilities.workspace
        edit = workspace.workspace_edit if workspace is not None else None
        versioned = bool(edit is not None and edit.document_changes)
        return Snapshot(uri, filename, parts, notebook is not None, unsaved, self._folder(filename), versioned)

    def _encoding(self) -> str:
        return self.workspace.position_encoding or types.PositionEncodingKind.Utf16

    def _folder(self, filename: str) -> str:
        folders = [*(_path(folder.uri) for folder in self.workspace.folders.values()), self.workspace.root_path or ""]
        around = [folder for folder in folders if folder and filename.startswith(os.path.join(folder, ""))]
        return max(around, key=len, default="")

    # -- what is found -------------------------------------------------------------------------------------------------

    async def work(self, function: Callable[[], _T]) -> _T:
        """What a function returns that takes time."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, function)

    def schedule(self, uri: str, pause: float = PAUSE) -> None:
        """Look at a file or notebook soon, unless it changes before."""
        known = self._pending.get(uri)
        if known is not None:
            known.cancel()
        self._pending[uri] = asyncio.ensure_future(self._look(uri, pause))

    def saved(self, uri: str) -> None:
        """A file was written: look at it, and at those for which it was looked at, be it in vain."""
        self._worker.submit(view.begin)
        path = _path(uri)
        for other, analysis in [*self._analyses.items()]:
            if other == uri or path in analysis.looked_at:
                self._analyses.pop(other)
                self.schedule(other, 0)

    def schedule_all(self) -> None:
        """Look at all that is open, since files have changed that it may depend on."""
        self._worker.submit(view.begin)
        self._analyses.clear()
        for uri in dict.fromkeys(map(self.owner, self._texts)):
            self.schedule(uri)

    async def _look(self, uri: str, pause: float) -> None:
        await asyncio.sleep(pause)
        analysis = await self.analysis(uri)
        if analysis is None:
            return
        if analysis.problem and analysis.problem not in self._told:
            self._told.add(analysis.problem)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"devlint: {analysis.problem}"))
        snapshot = analysis.snapshot
        for part in snapshot.parts:
            here = [finding for finding in analysis.findings if finding.span.cell == part.cell]
            found = [messages.diagnostic(snapshot, finding, self.pages.address) for finding in here]
            self.publish(part.uri, found, part.version)

    async def analysis(self, uri: str) -> Analysis | None:
        """What is found in a file or notebook as it is now."""
        snapshot = self.snapshot(uri)
        if snapshot is None:
            return None
        known = self._analyses.get(uri)
        if known is None or known.snapshot.parts != snapshot.parts:
            known = self._analyses[uri] = await self.work(partial(analyze, snapshot))
        return known

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None = None) -> None:
        """Show the findings of a text."""
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    # -- what is asked -------------------------------------------------------------------------------------------------

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """What can be done about the findings in a range, and about the whole text."""
        uri = params.text_document.uri
        analysis = await self.analysis(self.owner(uri))
        part = analysis.snapshot.at(uri) if analysis is not None else None
        if analysis is None or part is None:
            return []
        only = params.context.only
        found: list[types.CodeAction] = []
        if _wants(only, types.CodeActionKind.QuickFix):
            pairs = _within(analysis, part, params.range)
            found += await self.work(partial(messages.actions, analysis, pairs, self.pages.address))
        if _wants(only, messages.FIX_ALL) and any(one.fix is not None for one in analysis.found):
            texts = await self.work(partial(all_fixed, analysis))
            if texts is not None:
                title = "devlint: Apply all safe fixes"
                found.append(messages.action(analysis.snapshot, title, texts, messages.FIX_ALL))
        return found

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        """Where the name under the cursor is, and how it came there."""
        uri = params.text_document.uri
        snapshot = self.snapshot(self.owner(uri))
        part = snapshot.at(uri) if snapshot is not None else None
        if snapshot is None or part is None:
            return None
        answers = await self.work(partial(told, snapshot, uri, *part.column(params.position)))
        document = self.client_capabilities.text_document
        formats = document.hover.content_format if document is not None and document.hover is not None else None
        return messages.hover(snapshot, part, answers, types.MarkupKind.Markdown in (formats or ()))

    def stop(self) -> None:
        """Let go of everything."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        self.pages.remove()


def _path(uri: str) -> str:
    """The path of a file, empty for what is none."""
    return os.path.abspath(to_fs_path(uri) or "") if uri.startswith("file:") else ""


def _wants(only: Iterable[types.CodeActionKind | str] | None, kind: str) -> bool:
    """Whether actions of a kind are asked for: `source` asks for `source.fixAll` as well."""
    words = [word.value if isinstance(word, types.CodeActionKind) else word for word in only or ()]
    return only is None or any(f"{kind}.".startswith(f"{word}.") for word in words)


def _within(analysis: Analysis, part: Part, asked: types.Range) -> list[tuple[Finding, Finding]]:
    """The findings of a part that meet a range, each in the code and at its place."""
    found = []
    for finding, placed in zip(analysis.found, analysis.placed, strict=True):
        if placed.span.cell != part.cell:
            continue
        shown = part.place(placed.span)
        if shown.start <= asked.end and asked.start <= shown.end:
            found.append((finding, placed))
    return found


def server() -> Server:
    """A server that can be started, with the messages of the protocol that it listens to."""
    made = Server()
    for listen in (_documents, _notebooks, _life):
        listen(made)
    kinds = types.CodeActionOptions([types.CodeActionKind.QuickFix, messages.FIX_ALL])
    # a bound method takes no attributes, which pygls wants to give to what it calls
    made.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(partial(made.actions))
    made.feature(types.TEXT_DOCUMENT_HOVER)(partial(made.hover))
    return made


def _documents(made: Server) -> None:
    @made.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        made.opened(params.text_document)
        made.schedule(params.text_document.uri, 0)

    @made.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def edited(params: types.DidChangeTextDocumentParams) -> None:
        made.edited(params.text_document, params.content_changes)
        made.schedule(params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        made.saved(params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        made.forget(params.text_document.uri)
        made.closed(params.text_document.uri)


def _notebooks(made: Server) -> None:
    @made.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenNotebookDocumentParams) -> None:
        for document in params.cell_text_documents:
            made.opened(document, params.notebook_document.uri)
        made.schedule(params.notebook_document.uri, 0)

    @made.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def edited(params: types.DidChangeNotebookDocumentParams) -> None:
        uri, cells = params.notebook_document.uri, params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            for document in cells.structure.did_open or ():
                made.opened(document, uri)
            for gone in cells.structure.did_close or ():
                made.closed(gone.uri)
        for text in cells.text_content or ():
            made.edited(text.document, text.changes)
        made.schedule(uri)

    @made.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveNotebookDocumentParams) -> None:
        made.saved(params.notebook_document.uri)

    @made.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseNotebookDocumentParams) -> None:
        made.forget(params.notebook_document.uri)
        for document in params.cell_text_documents:
            made.closed(document.uri)


def _life(made: Server) -> None:
    @made.feature(types.INITIALIZED)
    async def ready(_: types.InitializedParams) -> None:
        workspace = made.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        if watching is None or not watching.dynamic_registration:
            return
        options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(glob) for glob in _WATCHED])
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        registration = types.Registration("devlint-watched", method, options)
        await made.client_register_capability_async(types.RegistrationParams([registration]))

    @made.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def changed(_: types.DidChangeWatchedFilesParams) -> None:
        made.schedule_all()

    @made.feature(types.SHUTDOWN)
    def shutdown(_: None) -> None:
        made.finished = True
