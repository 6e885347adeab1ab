"""The notes of a release: ``python -m tools.releasing.notes [--tag v0.1.0]`` prints what CHANGELOG.md says of it.

Without a tag, or with an empty one, it is the version that the sources have.  A tag of another version, and a version
of which the changelog says nothing, is an error.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def version() -> str:
    """The version of the sources, which hatch reads in the same place."""
    text = (ROOT / "devlint" / "_about.py").read_text(encoding="utf-8")
    (found,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(found)


def notes(changelog: str, wanted: str) -> str:
    """The section of a version, without its heading; empty where there is none."""
    _, *sections = re.split(r"^## ", changelog, flags=re.MULTILINE)
    for section in sections:
        title, _, text = section.partition("\n")
        if re.match(rf"\[{re.escape(wanted)}\]( - \d{{4}}-\d\d-\d\d)?$", title.strip()):
            return text.strip()
    return ""


def main(arguments: list[str]) -> None:
    """Print the notes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", default="", help="the tag that makes the release")
    tag = parser.parse_args(arguments).tag
    if tag not in ("", f"v{version()}"):
        sys.exit(f"error: the tag is {tag}, but the sources are of version {version()}")
    text = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version())
    if not text:
        sys.exit(f"error: CHANGELOG.md has no section [{version()}], or an empty one")
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
