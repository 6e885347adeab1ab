"""Reads recordings of real cards, audits programs that do the same, and keeps what both say.

    python -m tests.recordings FOLDER...            reads the traces in these folders, which it knows by their digests
    python -m tests.recordings                      audits the programs again, and leaves the traces alone
    python -m tests.recordings FOLDER... --check    writes nothing; fails if anything is otherwise than it is kept

`python -m docs.generate` writes docs/confirmed.md of what is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from devlint.auditor.profile import reading
from tests.recordings import digest, listed, operators, page, running

_NO_DEVICE_SIDE = frozenset({"square, host side only"})
"""Their operators cannot be seen to copy."""


def main(arguments: list[str]) -> int:
    """Read, audit, and write or check."""
    check = "--check" in arguments
    folders = [Path(each) for each in arguments if each != "--check"]
    found = dict(_found(folders)) if folders else None
    stale = []
    for path, text in _texts(found):
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(path.name)
        elif not check:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"not as kept: {', '.join(stale)}", file=sys.stderr)
    return bool(stale)


def _found(folders: list[Path]) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield hashlib.sha256(path.read_bytes()).hexdigest(), path


def _texts(found: dict[str, Path] | None) -> Iterator[tuple[Path, str]]:
    """What is kept, file by file."""
    every = listed.recordings()
    if found is not None:
        missing = [each.name for each in every if each.sha256 not in found]
        if missing:
            raise SystemExit(f"error: not in these folders: {'; '.join(missing)}")
        read = {each.name: digest.of_trace(reading.read(str(found[each.sha256])), os.getcwd()) for each in every}
        yield listed.DIGESTS, listed.as_text(read)
        whole = [str(found[each.sha256]) for each in every if each.name not in _NO_DEVICE_SIDE]
        yield operators.OPERATORS, operators.as_text(operators.counted(whole))
    audited = {page.command(each): [asdict(one) for one in running.run(each)] for each in every if each.program}
    yield page.AUDITS, json.dumps(audited, indent=1) + "\n"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
