"""``python -m tools.compiling FOLDER``: a compiled devlint in a new folder."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.compiling.build import CompilingError, build

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.compiling FOLDER")
    try:
        build(Path(sys.argv[1]).resolve())
    except (CompilingError, FileExistsError) as error:
        sys.exit(f"error: {error}")
