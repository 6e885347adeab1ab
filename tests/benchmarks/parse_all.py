"""Parse every Python file below a folder, or one file, and nothing else: ``python parse_all.py ast|libcst PATH``.

This is the yardstick of ``check_speed``: it runs in a process of its own, imports only the parser which it measures,
and drops each tree before it parses the next file.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def ast_parser() -> Callable[[bytes], object]:
    """CPython's own parser, with the tree as Python objects."""
    import ast

    return ast.parse


def libcst_parser() -> Callable[[bytes], object]:
    """LibCST's native parser, with the tree as Python objects."""
    import libcst

    return libcst.parse_module


PARSERS = {"ast": ast_parser, "libcst": libcst_parser}


def parse_all(parse: Callable[[bytes], object], folder: Path) -> list[Path]:
    """Parse the files in ``folder`` one after the other; the files which ``parse`` refused are returned."""
    refused = []
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*.py")):
        try:
            parse(path.read_bytes())
        except Exception:  # each parser has its own error, and only one of them may be imported
            refused.append(path)
    return refused


def main(arguments: list[str]) -> int:
    """Run the parser named first over the folder named second."""
    parser, folder = arguments
    warnings.simplefilter("ignore")
    for path in parse_all(PARSERS[parser](), Path(folder)):
        print(f"{parser} cannot parse {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
