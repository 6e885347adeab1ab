"""What the pages of docs/ need besides to be a site; mkdocs.yml names it as a hook.

A link that leads out of docs/ leads to the repository, whose address ``DEVLINT_REPOSITORY`` tells: a workflow on GitHub
tells its own.  Without it the address that the pages use as an example stands there.
"""

from __future__ import annotations

import os
import posixpath
import sys
from pathlib import Path
from typing import Any

EXAMPLE = "https://git.example.org/devlint"
"""In the pages, for the address that devlint is cloned from."""


def on_config(config: Any) -> None:
    """Tell the theme of the repository."""
    address = _address()
    if address != EXAMPLE:
        config.repo_url = address
        config.repo_name = "/".join(address.split("/")[-2:])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A page whose links work in the site."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tools.releasing.links import outward

    address = _address()
    return outward(markdown, posixpath.dirname(page.file.src_uri), address).replace(EXAMPLE, address)


def _address() -> str:
    return os.environ.get("DEVLINT_REPOSITORY", "").rstrip("/") or EXAMPLE
