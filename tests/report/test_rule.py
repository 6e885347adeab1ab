"""`devlint rule` on a terminal and in a pipe."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import devlint
from devlint.rules.registry import registry

_OF_TERMINALS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
pty = pytest.importorskip("pty", reason="needs a terminal as POSIX has it")


def on_a_terminal(columns: int, *arguments: str) -> str:
    """What the command prints on a terminal of that width, without its colours."""
    import fcntl
    import termios

    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in _OF_TERMINALS}
    variables = {**kept, "TERM": "xterm", "PYTHONPATH": str(Path(devlint.__file__).parents[1])}
    child = subprocess.Popen([sys.executable, "-m", "devlint", *arguments], stdin=end, stdout=end, env=variables)
    os.close(end)
    printed = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # the child has gone
            break
        if not piece:
            break
        printed += piece
    os.close(terminal)
    assert child.wait(30) == 0
    text = printed.decode().replace("\r\n", "\n")
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("columns", [60, 200])
def test_text_is_wrapped_to_80_columns_at_most_and_code_is_not(columns: int) -> None:
    rule = registry()["DVL301"]
    lines = [line.rstrip() for line in on_a_terminal(columns, "rule", "DVL301").splitlines()]
    assert lines[0] == "DVL301 missing-pin-memory"
    assert lines[1] == "info, on by default, fix: safe or unsafe; audits, too"
    code = [line for line in rule.sections()["Use instead"].splitlines() if not line.startswith("```")]
    assert [line for line in code if line and f"    {line}" not in lines] == []
    links = [line for line in lines if "https://" in line]
    assert len(links) == rule.documentation().count("https://"), "an address is to be seen, not only to be clicked"
    text = [line for line in lines if not line.startswith("    ") and line not in links]
    assert max(map(len, text)) <= min(columns, 80)
    for heading in rule.sections():
        assert heading in lines


def test_the_list_fits_the_terminal() -> None:
    lines = on_a_terminal(70, "rule", "--all").splitlines()
    assert len(lines) == len(registry())
    assert max(map(len, lines)) <= 70
