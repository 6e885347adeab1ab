"""Links between files of the repository, led to the repository where the files are not."""

from __future__ import annotations

import posixpath
import re

_HERE = r"(?!https?://|mailto:|#)"


def absolute(text: str, address: str, revision: str) -> str:
    """A README whose links and pictures lead to a revision of the repository; those within it stay."""
    pictures = rf'(\bsrc="|!\[[^\]]*\]\(){_HERE}'
    text = re.sub(pictures, rf"\g<1>{address}/raw/{revision}/", text)
    return re.sub(rf"(\]\(){_HERE}(?=[^)\s]+\))", rf"\g<1>{address}/blob/{revision}/", text)


def outward(text: str, folder: str, address: str) -> str:
    """A page in a folder of docs/, with links to files outside of docs/ led to the repository at ``address``."""

    def led(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        return link[0] if path.startswith("docs/") else f"{link[1]}{address}/blob/main/{path}"

    return re.sub(r"(\]\(|\bsrc=\")(\.\./[^)\s#\"]+)", led, text)
