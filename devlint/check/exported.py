"""A file of Python that was a notebook once: the lines of IPython that it kept give way to Python that says nothing."""

from __future__ import annotations

from dataclasses import replace

from devlint.check.opened import Opened
from devlint.immutable import immutable
from devlint.source.document import Document, UnfixableError
from devlint.source.notebook.magics import MARK, exported, restored


@immutable(frozen=True, slots=True)
class OpenedExport(Opened):
    """The file without IPython's lines, which ``replaced`` has by the marks that stand for them."""

    document: Document
    replaced: dict[str, str]

    def file(self, code: bytes) -> bytes:
        """The file with other code, and its own lines of IPython."""
        text = code.decode(self.document.encoding)
        if sorted(self.replaced) != sorted(mark for mark in self.replaced if mark in text):
            raise UnfixableError("a magic of IPython would be lost; please report it")
        lines = (restored(line, self.replaced) if MARK in line else line for line in text.split("\n"))
        return replace(self.document, text="\n".join(lines)).data()


def open_export(data: bytes) -> Opened:
    """Open a file that may have kept lines of IPython; as it is where it has not."""
    try:
        document = Document.read(data)
    except UnfixableError:
        return Opened(data)
    found = exported(document.text)
    if found is None:
        return Opened(data)
    return OpenedExport(found.text.encode(document.encoding), document, found.replaced)
