"""Files that somebody names, whatever they are."""

from __future__ import annotations

import io
import os
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from devlint.cli import main
from devlint.source import files

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and devices are files only there")


def test_what_comes_from_a_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(b"x" * 100_000,))
    writer.start()
    assert files.content(str(pipe)) == b"x" * 100_000
    writer.join()
    assert files.content(os.devnull) == b""


def test_what_never_ends_is_one_line(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST", 1 << 20)
    tree({"a.py": "import torch\n"})
    said = "/dev/zero: Is no regular file, and holds more than 1 MiB\n"
    for arguments, option in {
        ("check", "a.py", "--config", "/dev/zero"): "",
        ("check", "a.py", "--evidence", "/dev/zero"): "--evidence: ",
        ("report", "/dev/zero"): "",
        ("where", "/dev/zero:1"): "",
    }.items():
        done = CliRunner().invoke(main, arguments)
        assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"error: {option}{said}")


def test_what_does_not_fit_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Huge(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise MemoryError

    (tmp_path / "a").write_bytes(b"x")
    monkeypatch.setattr("builtins.open", lambda path, mode: Huge(path))
    with pytest.raises(OSError, match="does not fit into memory"):
        files.content(str(tmp_path / "a"))
