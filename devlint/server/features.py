"""Which of the protocol's messages the server listens to."""

from __future__ import annotations

from lsprotocol import types

from devlint.server import messages
from devlint.server.app import Server

_WATCHED = ("**/pyproject.toml", "**/*.py")


def server() -> Server:
    """A server that can be started."""
    made = Server()
    _documents(made)
    _notebooks(made)
    _requests(made)
    _life(made)
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


def _requests(made: Server) -> None:
    kinds = [types.CodeActionKind.QuickFix, messages.FIX_ALL]

    @made.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        return await made.actions(params)

    @made.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        return await made.hover(params)


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
