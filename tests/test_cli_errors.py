"""What is wrong with a command line is said in one line, whoever notices it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from devlint.auditor.running import storage
from devlint.cli import main
from devlint.interrupt import dies_at_once
from devlint.record import Record


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["chek"], "no such command 'chek'"),
        ([__file__], f"no such command {__file__!r} (did you mean 'devlint check {__file__}'?)"),
        (["--nope"], "no such option"),
        (["check", "--nope"], "no such option"),
        (["check", "--select"], "option '--select' requires an argument"),
        (["check", "--jobs", "x"], "invalid value for '-j' / '--jobs': 'x' is not a valid integer range"),
        (["check", "--config", ""], "--config: no file is named"),
        (["check", "--config", "a\nb.toml"], "a b.toml: No such file or directory"),
        (["check", "--baseline", ""], "--baseline: no file is named"),
        (["audit"], "missing argument 'SCRIPT|MODULE'"),
        (["audit", "--steps", "0", "x.py"], "invalid value for '--steps': 0 is not in the range x>=1"),
        (["audit", "--output", "", "x.py"], "--output: no file is named"),
        (["audit", "--output", "a\0b", "x.py"], "--output: no file is named"),
        (["audit", "--config", "", "x.py"], "--config: no file is named"),
        (["report", "--nope"], "no such option"),
        (["rule"], "give the code or the name of a rule, or --all"),
        (["rule", "DVL101", "--all"], "give the code or the name of a rule, or --all"),
        (["rule", "A", "B"], "got unexpected extra argument"),
        (["rule", "--output-format", "x"], "invalid value for '--output-format': 'x' is not one of 'text', 'json'"),
    ],
)
def test_one_line(arguments: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").write_text("open('ran', 'w')\n")
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {line}")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "ran").exists()


def test_a_slip_of_the_pen() -> None:
    assert "(did you mean '--statistics'?)" in CliRunner().invoke(main, ["check", "--statistic"]).stderr


def test_the_help_is_no_error() -> None:
    for arguments in ([], ["--help"], ["check", "-h"], ["audit", "-h"]):
        result = CliRunner().invoke(main, arguments)
        assert "Usage: " in result.output, (arguments, result)
        assert "error: " not in result.output


def test_every_option_has_a_help_text() -> None:
    for command in main.commands.values():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                text = parameter.help or ""
                assert text.endswith("."), f"{command.name} {parameter.opts}"


PLACE = ("where", f"{__file__}:1")
PRINTING = [PLACE, ("rule", "--all"), ("rule", "DVL101"), ("--version",), ("check", "--help")]


def printing(arguments: tuple[str, ...], **streams: object) -> tuple[int, str]:
    root = str(Path(__file__).parents[1])
    command = [sys.executable, "-m", "devlint", *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root}, **streams)  # type: ignore[call-overload]  # whatever stream it is
    return done.returncode, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("arguments", PRINTING)
def test_no_room_for_what_is_printed(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        assert printing(arguments, stdout=full) == (
            2,
            "error: the output cannot be written: No space left on device\n",
        )


@pytest.mark.skipif(os.name != "posix", reason="descriptors of another kind")
@pytest.mark.parametrize("arguments", PRINTING)
def test_nobody_reads_what_is_printed(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert printing(arguments, stdout=writer) == (0, "")
    finally:
        os.close(writer)
    # of the first line of this file nothing is known
    assert printing(arguments, preexec_fn=lambda: os.close(1)) == (int(arguments == PLACE), "")


@pytest.mark.skipif(os.name != "posix", reason="a directory in use cannot be removed")
@pytest.mark.parametrize("arguments", [("--version",), ("check",), PLACE])
def test_a_current_directory_that_is_gone_is_one_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    assert printing(arguments, cwd=gone, stdout=subprocess.DEVNULL, preexec_fn=gone.rmdir) == (
        2,
        "error: the current directory does not exist any more\n",
    )


@pytest.mark.skipif(os.name != "posix", reason="signals of another kind")
def test_ctrl_c_while_modules_are_loaded_is_no_traceback() -> None:
    code = (
        "import os, signal\n"
        "from devlint.interrupt import dies_at_once\n"
        "with dies_at_once(): pass\n"
        "try: os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt: print('as usual', flush=True)\n"
        "with dies_at_once(): os.kill(os.getpid(), signal.SIGINT)\n"
        "print('never')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("as usual\n", "")
    assert done.returncode == -signal.SIGINT


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with dies_at_once():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_before_a_command_begins_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("devlint.report.rule.explain", interrupted)
    result = CliRunner().invoke(main, ["rule", "DVL101"])
    assert (result.exit_code, result.stderr) == (130, "error: interrupted\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_record_that_cannot_be_shown_for_want_of_room(tmp_path: Path) -> None:
    file = str(tmp_path / "record.json")
    storage.write(Record(command=("train.py",)), file)
    with open("/dev/full", "w") as full:
        expected = "error: the report cannot be written: No space left on device\n"
        assert printing(("report", file), stdout=full) == (2, expected)
