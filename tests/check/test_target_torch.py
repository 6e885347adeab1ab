"""No advice and no fix names what the oldest torch of a project does not have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from devlint.cli import main

CODE = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(CODE)
    return tmp_path


def found(*options: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(
        main, ["check", "--no-cache", "--select", "DVL701", "--output-format", "json", *options]
    )
    assert result.exit_code in (0, 1), result.output
    loaded: list[dict[str, object]] = json.loads(result.stdout)
    return loaded


@pytest.mark.parametrize(
    ("requirement", "told"), [("torch>=2.1", False), ("torch==1.9.0", False), ("torch>=2.3", True), ("torch", True)]
)
def test_what_the_oldest_torch_lacks_is_not_advised(here: Path, requirement: str, told: bool) -> None:
    (here / "requirements.txt").write_text(requirement)
    assert bool(found()) is told


def test_the_nearest_requirement_counts(here: Path) -> None:
    (here / "requirements.txt").write_text("torch>=2.3")
    (here / "old").mkdir()
    (here / "old/environment.yml").write_text("dependencies:\n- pytorch=1.9.0\n")
    (here / "old/train.py").write_text(CODE)
    assert [Path(str(one["filename"])).name for one in found()] == ["train.py"]
    assert not found("old/train.py")


@pytest.mark.parametrize("option", ["--target-torch=2.4", "--isolated"])
def test_the_command_line_is_stronger(here: Path, option: str) -> None:
    (here / "requirements.txt").write_text("torch>=2.1")
    assert found(option)


def test_the_configuration_is_stronger(here: Path) -> None:
    (here / "requirements.txt").write_text("torch>=2.1")
    (here / "pyproject.toml").write_text('[tool.devlint]\ntarget-torch = "2.4"')
    assert found()


def test_a_file_of_settings_does_not_hide_what_is_required(here: Path) -> None:
    (here / "requirements.txt").write_text("torch>=2.1")
    (here / "devlint.toml").write_text("ignore = []")
    assert not found("--config=devlint.toml")


def test_a_changed_requirement_is_noticed_by_the_cache(here: Path) -> None:
    call = ["check", "--cache-dir", str(here / "cache"), "--select", "DVL701", "-q"]
    (here / "requirements.txt").write_text("torch>=2.3")
    first = CliRunner().invoke(main, call)
    (here / "requirements.txt").write_text("torch>=2.1")
    assert (first.exit_code, CliRunner().invoke(main, call).exit_code) == (1, 0)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], 'target-torch = "2.1"  # requirements.txt: torch>=2.1'),
        (["--target-torch=2.6"], 'target-torch = "2.6"'),
        (["--isolated"], "# target-torch = nothing says how old the oldest torch may be"),
        (["--select=DVL701,DVL703"], 'select = ["DVL701", "DVL703", "DVL900"]'),
        (["--fail-on=error"], 'fail-on = "error"'),
    ],
)
def test_the_settings_are_shown(here: Path, options: list[str], line: str) -> None:
    (here / "requirements.txt").write_text("torch>=2.1\n")
    result = CliRunner().invoke(main, ["check", "--show-settings", *options])
    assert result.exit_code == 0, result.output
    assert line in result.stdout.splitlines()


def test_what_is_shown_is_a_configuration(here: Path) -> None:
    (here / "pyproject.toml").write_text(
        '[tool.devlint]\nignore = ["DVL6"]\nseverity = { DVL701 = "error" }\nper-file-ignores = { "a/*" = ["DVL7"] }\n'
    )
    shown = CliRunner().invoke(main, ["check", "--show-settings"]).stdout
    (here / "pyproject.toml").write_text(shown)
    assert CliRunner().invoke(main, ["check", "--show-settings"]).stdout == shown


def test_nothing_is_deprecated_yet_in_the_torch_of_a_pin(here: Path) -> None:
    """Seen in MiniGPT-4: nobody there sees the warning."""
    (here / "train.py").write_text("import torch\n\nwith torch.cuda.amp.autocast():\n    pass\n")
    for requirement, told in (("torch==2.0.0", False), ("torch>=2.0", True), ("torch==2.5.1", True)):
        (here / "requirements.txt").write_text(requirement)
        report = CliRunner().invoke(main, ["check", "--no-cache", "--output-format", "json"]).stdout
        assert bool(json.loads(report)) is told
        assert len(found()) == 1
