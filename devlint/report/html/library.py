"""The JavaScript that draws the charts, and what is said where it is not installed."""

from __future__ import annotations

import contextlib
import os

from devlint.source.output import write

EXTRA = "the HTML report needs the extra `html`: pip install 'devlint[html]'"
_EXPORTS = "window.vegaEmbed = vegaEmbed;"


class MissingLibraryError(Exception):
    """A library of the extra is not installed; the text is the one line that the user sees."""


def check_libraries() -> None:
    """Raise :class:`MissingLibraryError` if the page could not be made, without importing what makes it."""
    from importlib.util import find_spec

    try:
        there = all(find_spec(name) is not None for name in ("jinja2", "vl_convert"))
    except (ImportError, ValueError):
        there = False
    if not there:
        raise MissingLibraryError(EXTRA)


def plotting_library(cache: str | None = None) -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that may stand in a page.

    To bundle it takes more than a second, so that it is kept in the directory ``cache`` where that is given.
    """
    check_libraries()
    from importlib.metadata import version

    import vl_convert

    path = os.path.join(cache, f"vega-{version('vl-convert-python')}.js") if cache else ""
    with contextlib.suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as stream:
        return stream.read()
    script: str = vl_convert.javascript_bundle(_EXPORTS)
    if "</script" in script.lower() or "<!--" in script:  # which would end the element around it
        raise MissingLibraryError("the HTML report cannot be made with this version of vl-convert")
    if path:
        with contextlib.suppress(OSError):
            write(path, script.encode())
    return script
