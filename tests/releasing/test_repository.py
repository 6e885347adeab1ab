"""What GitHub reads of the repository is what GitHub accepts, and is safe."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import devlint
from devlint.auditor.recorder import backends

yaml = pytest.importorskip("yaml")

ROOT = Path(devlint.__file__).parents[1]
GITHUB = ROOT / ".github"
if not GITHUB.is_dir():
    pytest.skip("what GitHub reads is not part of this distribution", allow_module_level=True)
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
"""Those that devlint supports."""


def read(path: Path) -> Any:
    # BaseLoader: the key `on` stays one, and 3.10 keeps its nought
    return yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("dependabot", [GITHUB / "dependabot.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_is_what_github_accepts(schema: str, files: list[Path]) -> None:
    pytest.importorskip("check_jsonschema", reason="needs Python 3.11")
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
class TestWorkflow:
    def test_it_may_only_read_and_each_job_says_what_it_needs_besides(self, path: Path) -> None:
        workflow = read(path)
        assert workflow["permissions"] == {"contents": "read"}
        writing = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
        assert writing == {
            "tests.yml": {},
            "docs.yml": {"deploy": {"pages": "write", "id-token": "write"}},
            "release.yml": {"publish": {"id-token": "write"}, "announce": {"contents": "write"}},
        }.get(path.name, {})

    def test_it_neither_hangs_nor_runs_twice(self, path: Path) -> None:
        workflow = read(path)
        assert "${{ github.ref }}" in workflow["concurrency"]["group"]
        assert all("timeout-minutes" in job for job in workflow["jobs"].values())

    def test_actions_have_a_version_and_no_checkout_keeps_its_password(self, path: Path) -> None:
        steps = [step for job in read(path)["jobs"].values() for step in job["steps"]]
        for step in steps:
            if "uses" in step:
                assert re.fullmatch(r"(actions|pypa)/[\w-]+@(v\d+|release/v1)", step["uses"]), step["uses"]
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] == "false"

    def test_no_text_from_outside_becomes_part_of_a_script(self, path: Path) -> None:
        """It goes through a variable of the environment; a matrix is the workflow's own."""
        scripts = [step.get("run", "") for job in read(path)["jobs"].values() for step in job["steps"]]
        assert not [script for script in scripts if re.search(r"\$\{\{ *(?!matrix\.)", script)]

    def test_what_it_names_of_the_repository_is_there(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        for module in re.findall(r"python -m (tools[\w.]*)", text):
            place = ROOT.joinpath(*module.split("."))
            assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), module
        for name in re.findall(r"(?:^|[\s\"'])((?:tests|tools|\.ci|docs)/[\w./-]*)", text):
            assert (ROOT / name.rstrip("/.")).exists(), name


def test_all_pythons_are_tested_and_have_compiled_wheels() -> None:
    matrix = read(GITHUB / "workflows" / "tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (built,) = re.findall(r"\[tool\.cibuildwheel\]\nbuild = \[(.*)\]", text)
    assert re.findall(r'"cp3(\d+)-\*"', built) == [python[2:] for python in PYTHONS]
    assert re.findall(r"Python :: (3\.\d+)", text) == PYTHONS
    assert f'requires-python = ">={PYTHONS[0]}"' in text


def test_the_oldest_and_the_newest_torch_are_tested() -> None:
    rows = read(GITHUB / "workflows" / "tests.yml")["jobs"]["torch"]["strategy"]["matrix"]["include"]
    torches = [row["torch"] for row in rows]
    oldest = re.findall(r'audit = \["torch>=([\d.]+)"\]', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    known = re.findall(r"^torch==([\d.]+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert torches[0].startswith(f"=={oldest[0]}.")
    assert f"older ones from {oldest[0]} |" in (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert oldest == [backends._OLDEST]
    assert f"=={known[0]}" in torches
    assert "" in torches, "and whatever is newest"


def test_nothing_is_published_that_was_not_built_and_tried() -> None:
    jobs = read(GITHUB / "workflows" / "release.yml")["jobs"]
    assert {*jobs["publish"]["needs"]} == jobs.keys() - {"publish", "announce"}
    assert jobs["announce"]["needs"] == "publish"
    assert jobs["publish"]["if"] == "github.event_name == 'push' && github.ref_type == 'tag'"
    assert jobs["publish"]["environment"]["name"] == "pypi"


@pytest.mark.parametrize("path", FORMS[:2], ids=lambda path: path.name)
def test_a_report_asks_for_the_versions(path: Path) -> None:
    (block,) = [part for part in read(path)["body"] if part.get("id") == "info"]
    assert "`devlint info`" in block["attributes"]["description"]
    assert block["validations"]["required"] == "true"


def test_the_version_is_the_same_everywhere() -> None:
    assert read(ROOT / "CITATION.cff")["version"] == devlint.__version__
    assert f"\n## [{devlint.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
