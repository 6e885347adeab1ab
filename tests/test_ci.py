"""The GitHub Action and the snippets of docs/ci.md and docs/pre-commit.md, as those would take them who read them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import devlint

yaml = pytest.importorskip("yaml", reason="comes with pre-commit")

ROOT = Path(devlint.__file__).parents[1]
if not (ROOT / "action.yml").exists():
    pytest.skip("the action is not part of this distribution", allow_module_level=True)
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WORKFLOW, GITLAB = BLOCK.findall(PAGE)
HOOKS = [
    (page, text)
    for page in ("pre-commit.md", "getting-started.md")
    for text in BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
]
BAD = "import torch\nx = torch.ones(2)\nx.to('cuda')\n"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("github-actions", (ROOT / "action.yml").read_text(encoding="utf-8")),
        ("github-workflows", WORKFLOW),
        ("gitlab-ci", GITLAB),
    ],
    ids=["github-actions", "github-workflows", "gitlab-ci"],
)
def test_it_is_what_the_service_accepts(schema: str, text: str, tmp_path: Path) -> None:
    """By the schemas of SchemaStore and GitLab, which that program brings along."""
    pytest.importorskip("check_jsonschema", reason="needs Python 3.11")
    (tmp_path / "file.yml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", "file.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("hooks", [text for _, text in HOOKS], ids=[page for page, _ in HOOKS])
def test_pre_commit_accepts_the_hooks(hooks: str, tmp_path: Path) -> None:
    pytest.importorskip("pre_commit")
    (tmp_path / "hooks.yaml").write_text(hooks, encoding="utf-8")
    command = [sys.executable, "-m", "pre_commit", "validate-config", "hooks.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_the_local_hook_is_the_one_that_the_repository_has() -> None:
    repositories = [repository for _, text in HOOKS for repository in yaml.safe_load(text)["repos"]]
    (local,) = [hook for repository in repositories if repository["repo"] == "local" for hook in repository["hooks"]]
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert local == {key: {**hook, "language": "system"}[key] for key in local}


def test_the_page_names_every_input() -> None:
    assert re.findall(r"^\| `([\w-]+)` \|", PAGE.partition("| input |")[2], re.MULTILINE) == list(ACTION["inputs"])
    used = yaml.safe_load(WORKFLOW)["jobs"]["devlint"]["steps"][1]["with"]
    assert used.keys() <= ACTION["inputs"].keys()


class Runner:
    """The shell steps of the action, with the variables and files of GitHub's runner.

    Its Python makes an environment in which pip writes down what it was asked to install, and devlint is this one.
    """

    def __init__(self, folder: Path) -> None:
        self.workspace, self.temporary = folder / "work space", folder / "temp"
        self.environment_file, self.output_file = folder / "env", folder / "output"
        self.installed = folder / "installed"
        for place in (self.workspace, self.temporary, folder / "bin"):
            place.mkdir()
        python = folder / "bin" / "python3"
        devlint_script = f'#!/bin/sh\\nexec "{sys.executable}" -m devlint "$@"\\n'
        python.write_text(
            "#!/bin/sh\n"
            'mkdir -p "$3/bin"\n'
            f'printf \'#!/bin/sh\\necho "$@" >> "{self.installed}"\\n\' > "$3/bin/python"\n'
            f"printf '{devlint_script}' > \"$3/bin/devlint\"\n"
            'chmod +x "$3/bin/python" "$3/bin/devlint"\n'
        )
        python.chmod(0o755)
        self._path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", "")])

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """All shell steps until one fails; the last one's outcome."""
        values = {name: entry["default"] for name, entry in ACTION["inputs"].items()}
        values |= {name.replace("_", "-"): value for name, value in inputs.items()}
        variables = self._variables()
        done = None
        for step in ACTION["runs"]["steps"]:
            if "run" not in step:
                continue
            given = {name: self._expanded(text, values) for name, text in step["env"].items()}
            folder = self.workspace / self._expanded(step.get("working-directory", "."), values)
            # as the runner starts `shell: bash`
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                command, cwd=folder, env={**variables, **given}, capture_output=True, text=True, timeout=120
            )
            if done.returncode:
                break
            lines = self.environment_file.read_text().splitlines() if self.environment_file.exists() else []
            variables |= dict(line.split("=", 1) for line in lines)
        assert done is not None
        return done

    @property
    def outputs(self) -> dict[str, str]:
        lines = self.output_file.read_text().splitlines() if self.output_file.exists() else []
        return dict(line.split("=", 1) for line in lines)

    def _variables(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "PYTHON"))}
        return {
            **kept,
            "PATH": self._path,
            "PYTHONPATH": str(ROOT),
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_ENV": str(self.environment_file),
            "GITHUB_OUTPUT": str(self.output_file),
        }

    def _expanded(self, text: str, values: dict[str, str]) -> str:
        values = {f"inputs.{name}": value for name, value in values.items()} | {"github.action_path": str(ROOT)}
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: values[match[1]], text)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    if os.name == "nt" or shutil.which("bash") is None:
        pytest.skip("needs bash")
    return Runner(tmp_path)


def results(runner: Runner) -> list[dict[str, Any]]:
    (run,) = json.loads(Path(runner.outputs["sarif-file"]).read_text(encoding="utf-8"))["runs"]
    found: list[dict[str, Any]] = run["results"]
    return found


def test_the_action_annotates_and_keeps_the_findings(runner: Runner) -> None:
    (runner.workspace / ".git").mkdir()
    (runner.workspace / "part").mkdir()
    (runner.workspace / "part" / "a b.py").write_text(BAD)
    (runner.workspace / "part" / "good.py").write_text("x = 1\n")
    done = runner.run(working_directory="part", args="--ignore DVL602")
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert line.startswith("::error title=devlint (DVL102),file=")
    (result,) = results(runner)
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert (result["ruleId"], artifact["uri"]) == ("DVL102", "part/a%20b.py")
    assert runner.installed.read_text().split() == [
        *"-m pip install --quiet --disable-pip-version-check".split(),
        str(ROOT),
    ]


def test_the_action_passes_where_nothing_is_found(runner: Runner) -> None:
    (runner.workspace / "good.py").write_text("x = 1\n")
    done = runner.run(version="0.1.0", args="--exclude *.txt")
    assert (done.returncode, done.stdout) == (0, "")
    assert results(runner) == []
    assert runner.installed.read_text().split()[-1] == "devlint==0.1.0"


def test_the_action_takes_several_paths_and_checks_nothing_else(runner: Runner) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (runner.workspace / name).write_text(BAD)
    runner.run(paths="a.py\nb.py", args="--select DVL102")
    found = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results(runner)]
    assert found == ["a.py", "b.py"]


def test_the_action_takes_paths_with_spaces(runner: Runner) -> None:
    (runner.workspace / "my code").mkdir()
    for name in ("my code/a.py", "b.py", "c.py", "$(touch hacked).py"):
        (runner.workspace / name).write_text(BAD)
    done = runner.run(paths="my code\nb.py c.py\n\n$(touch hacked).py", args="--select DVL102")
    assert done.returncode == 1
    found = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results(runner)]
    assert found == ["%24%28touch%20hacked%29.py", "b.py", "c.py", "my%20code/a.py"]
    assert not (runner.workspace / "hacked").exists()


def test_a_mistake_in_the_inputs_uploads_nothing(runner: Runner) -> None:
    (runner.workspace / "a.py").write_text(BAD)
    done = runner.run(args="--selekt ALL; touch hacked")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no such option '--selekt'")
    assert runner.outputs == {}
    assert not (runner.workspace / "hacked").exists()


def test_what_could_not_be_checked_is_uploaded_and_fails(runner: Runner) -> None:
    (runner.workspace / "a.py").write_text("x = 1\n")
    done = runner.run(paths="a.py gone.py")
    assert done.returncode == 2
    assert results(runner) == []
    text = Path(runner.outputs["sarif-file"]).read_text(encoding="utf-8")
    assert "gone.py: No such file or directory" in text


def test_the_findings_are_uploaded_whether_or_not_the_check_failed() -> None:
    upload = ACTION["runs"]["steps"][-1]
    assert "!cancelled()" in upload["if"]
    assert "inputs.upload-sarif == 'true'" in upload["if"]
    assert upload["with"]["sarif_file"] == ACTION["outputs"]["sarif-file"]["value"]


VENV = """#!/bin/sh
# python3 -m venv DIRECTORY
mkdir -p "$3/bin"
echo "PATH=$3/bin:$PATH" > "$3/bin/activate"
cat > "$3/bin/python" << 'END'
#!/bin/sh
echo "$@"
case "$*" in *"$FAILS") exit 3;; esac
END
chmod +x "$3/bin/python"
"""
INSTALL, FAST, SLOW = (
    ["-m pip install -c constraints.txt -e .[test]"],
    ["-m pytest -n auto"],
    ["+ python -m pytest -n auto -m slow", "-m pytest -n auto -m slow"],
)


@pytest.mark.skipif(not (ROOT / ".ci" / "run").exists(), reason="is not part of this distribution")
@pytest.mark.parametrize(
    ("fails", "code", "printed"),
    [
        ("nothing", 0, [*INSTALL, *FAST, *SLOW]),
        ("-e .[test]", 3, INSTALL),
        ("-n auto", 3, [*INSTALL, *FAST]),
        ("slow", 3, [*INSTALL, *FAST, *SLOW]),
    ],
)
def test_the_checks_of_the_repository_are_the_commands_of_its_readme(
    runner: Runner, tmp_path: Path, fails: str, code: int, printed: list[str]
) -> None:
    """What pytest prints last is the last line, also of tests that fail."""
    for name, text in {"venv": VENV, "chromedriver": "#!/bin/sh\n"}.items():
        program = tmp_path / "bin" / name
        program.write_text(text)
        program.chmod(0o755)
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "PYTHON": str(tmp_path / "bin" / "venv"), "FAILS": fails}
    done = subprocess.run([ROOT / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.splitlines()[1:] == printed
