"""An editor that talks to `devlint server` over its standard streams."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

import devlint

ROOT = str(Path(devlint.__file__).parents[1])
LONG = 120.0
"""Seconds after which nobody waits for an answer any more."""
_T = TypeVar("_T")


class Editor(LanguageClient):
    """A client that remembers what it is told."""

    def __init__(self) -> None:
        super().__init__("test", "1")
        self.found: dict[str, types.PublishDiagnosticsParams] = {}
        self.messages: list[str] = []
        self.logged: list[str] = []
        self.registered: list[types.Registration] = []
        self.news = asyncio.Event()
        self._versions: dict[str, int] = {}

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: types.PublishDiagnosticsParams) -> None:
            self.found[params.uri] = params
            self.news.set()

        @self.feature(types.WINDOW_SHOW_MESSAGE)
        def _(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self.news.set()

        @self.feature(types.WINDOW_LOG_MESSAGE)
        def _(params: types.LogMessageParams) -> None:
            self.logged.append(params.message)
            self.news.set()

        @self.feature(types.CLIENT_REGISTER_CAPABILITY)
        def _(params: types.RegistrationParams) -> None:
            self.registered += params.registrations
            self.news.set()

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._server is not None
        return self._server

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something holds; it is looked at whenever there is news."""

        async def waiting() -> None:
            while not holds():
                self.news.clear()
                await self.news.wait()

        await asyncio.wait_for(waiting(), LONG)

    async def open(self, path: Path, text: str | None = None, language: str = "python") -> str:
        """Open a file, with another text than it has if one is given; its address."""
        uri = path.as_uri()
        text = path.read_text(encoding="utf-8") if text is None else text
        self._versions[uri] = 1
        self.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, language, 1, text)))
        return uri

    def type(self, uri: str, text: str) -> int:
        """Change a whole text; its new version."""
        self._versions[uri] += 1
        version = self._versions[uri]
        self.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(uri=uri, version=version),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        return version

    async def codes(self, uri: str, version: int | None = None) -> list[str]:
        """The codes that are found in a text, as soon as they are told of that version."""
        await self.until(lambda: uri in self.found and version in (None, self.found[uri].version))
        return [str(one.code) for one in self.found[uri].diagnostics]

    async def actions(
        self, uri: str, row: int, column: int = 0, only: list[types.CodeActionKind | str] | None = None
    ) -> dict[str, types.CodeAction]:
        """The code actions at a place, by their titles."""
        at = types.Position(row, column)
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(uri), types.Range(at, at), types.CodeActionContext([], only=only)
        )
        found = await self.answer(self.text_document_code_action_async(params))
        assert all(isinstance(action, types.CodeAction) for action in found or ())
        return {action.title: action for action in found or ()}  # type: ignore[misc]  # no commands, seen above

    async def hover(self, uri: str, row: int, column: int) -> types.Hover | None:
        """What is shown of a place."""
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(row, column))
        return await self.answer(self.text_document_hover_async(params))

    async def answer(self, asked: Awaitable[_T]) -> _T:
        """What is answered, in time."""
        return await asyncio.wait_for(asked, LONG)


@asynccontextmanager
async def editor(
    folder: Path | None = None, capabilities: types.ClientCapabilities | None = None
) -> AsyncIterator[Editor]:
    """An editor with a server that is stopped as the protocol wants it, and has to end with 0 then."""
    client = Editor()
    environment = {**os.environ, "PYTHONPATH": ROOT}
    await client.start_io(sys.executable, "-m", "devlint", "server", env=environment)
    try:
        folders = None if folder is None else [types.WorkspaceFolder(folder.as_uri(), folder.name)]
        params = types.InitializeParams(capabilities or types.ClientCapabilities(), workspace_folders=folders)
        await client.answer(client.initialize_async(params))
        client.initialized(types.InitializedParams())
        yield client
        await client.answer(client.shutdown_async(None))
        client.exit(None)
        assert await asyncio.wait_for(client.process.wait(), LONG) == 0
    finally:
        if client.process.returncode is None:
            client.process.kill()
        await asyncio.wait_for(client.stop(), LONG)


def applied(text: str, edits: list[types.TextEdit]) -> str:
    """A text after edits, as an editor applies them: counted in UTF-16, the last first."""
    for edit in sorted(edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True):
        start, end = (_offset(text, place) for place in (edit.range.start, edit.range.end))
        text = text[:start] + edit.new_text + text[end:]
    return text


def _offset(text: str, place: types.Position) -> int:
    lines = text.split("\n")
    before = lines[place.line].encode("utf-16-le")[: 2 * place.character].decode("utf-16-le")
    return sum(len(line) + 1 for line in lines[: place.line]) + len(before)
