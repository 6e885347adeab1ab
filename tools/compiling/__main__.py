"""``python -m tools.compiling FOLDER``: a compiled devlint in a new folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.compiling.build import CompilingError, build

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.compiling", description="Compile devlint into a new folder.")
    parser.add_argument("folder", type=Path, help="is made; it must not be there")
    try:
        build(parser.parse_args().folder.resolve())
    except (CompilingError, FileExistsError) as error:
        sys.exit(f"error: {error}")
