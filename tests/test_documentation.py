"""The documentation is held to the code: tables are current, commands run, examples do what they are said to do."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import devlint
from devlint.check.engine import check_source
from devlint.config import _READERS, Config, Selection, load
from devlint.finding import Applicability
from devlint.rules import registry
from tests.notebooks import cell, notebook

ROOT = Path(devlint.__file__).parents[1]
if not (ROOT / "docs").is_dir():
    pytest.skip("the documentation is not part of this distribution", allow_module_level=True)

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/how-it-works.md",
    "docs/rules.md",
    "docs/accuracy.md",
    "docs/found-in-the-wild.md",
    "docs/audit.md",
    "docs/html-report.md",
    "docs/compare.md",
    "docs/ci.md",
    "docs/editor.md",
    "docs/notebooks.md",
    "docs/pytest.md",
    "docs/where.md",
    "docs/audit-record.md",
)
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
README, CONTRIBUTING = TEXTS["README.md"], TEXTS["CONTRIBUTING.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A name for the example of CONTRIBUTING.md, and the files that it tells to write.
EXAMPLE = "unpinned_async_copy"
EXAMPLE_FILES = (
    f"devlint/rules/loading/{EXAMPLE}.py",
    f"fixtures/rules/DVL399_{EXAMPLE}/bad.py",
    f"fixtures/rules/DVL399_{EXAMPLE}/good.py",
)


def blocks(text: str, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(text) if kind == language]


def devlint_commands() -> list[str]:
    """Every whole `devlint ...` command: in the console blocks, and in the text between backticks."""
    found: list[str] = []
    for text in TEXTS.values():
        lines = [line.partition("  #")[0] for block in blocks(text, "console") for line in block.splitlines()]
        found += [part for line in lines for part in line.split(" && ")]
        found += re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
    whole = {command.strip() for command in found if re.match(r"devlint (check|rule|where) \S", command.strip())}
    # A summary of a command, not one to type; and what takes a record, which the tests of --evidence do.
    return sorted(command for command in whole - {"devlint check -j 1"} if "--evidence" not in command)


def run(command: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")}
    variables = {**clean, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True)


def test_what_is_generated_is_current() -> None:
    done = run([sys.executable, "-m", "docs.generate", "--check"], ROOT)
    assert done.returncode == 0, done.stderr


def test_a_change_of_a_docstring_makes_the_documentation_stale(tmp_path: Path) -> None:
    """The command as it is run, in a copy where a rule says something else."""
    for folder in ("devlint", "docs", "tests/accuracy", "tests/benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", tmp_path)
    check = [sys.executable, "-m", "docs.generate", "--check"]
    assert run(check, tmp_path, PYTHONPATH=str(tmp_path)).returncode == 0
    rule = tmp_path / "devlint" / "rules" / "placement" / "discarded_move.py"
    text = rule.read_text(encoding="utf-8")
    for old, new, stale in (
        ("## Why it matters\n", "## Why it matters\n    Otherwise.\n", ["docs/rules.md"]),
        ("Severity.ERROR", "Severity.WARNING", ["README.md", "docs/rules.md"]),
    ):
        rule.write_text(text.replace(old, new), encoding="utf-8")
        done = run(check, tmp_path, PYTHONPATH=str(tmp_path))
        assert done.returncode == 1
        assert [line.split()[0] for line in done.stderr.splitlines()] == stale
        rule.write_text(text, encoding="utf-8")
    figures = {"title": "Fixtures", "command": "python -m measure", "summary": "All.", "tables": []}
    measured = tmp_path / "tests" / "accuracy" / "figures" / "fixtures.json"
    measured.parent.mkdir(exist_ok=True)
    measured.write_text(json.dumps({**figures, "measured": "2026-01-31", "versions": "torch 2"}), encoding="utf-8")
    assert run(check, tmp_path, PYTHONPATH=str(tmp_path)).stderr.startswith("docs/accuracy.md is stale")
    run(check[:-1], tmp_path, PYTHONPATH=str(tmp_path))
    text = (tmp_path / "docs" / "accuracy.md").read_text(encoding="utf-8")
    assert "## Fixtures\n\nAll.\n\nMeasured with `python -m measure` on 2026-01-31 (torch 2).\n" in text


@pytest.mark.parametrize("code", sorted(registry()))
def test_a_rule_declares_the_fixes_that_its_fixtures_show(code: str) -> None:
    rule = registry()[code]
    folder = ROOT / "fixtures" / "rules" / f"{code}_{rule.name.replace('-', '_')}"
    everything = Config().selecting(Selection(("ALL",)))
    found = [
        finding.fix.applicability
        for file in folder.glob("bad*.py")
        for finding in check_source(file.read_bytes(), "fixture.py", everything)
        if finding.code == code and finding.fix is not None
    ]
    shown = ", ".join(f"Applicability.{kind.name}" for kind in Applicability if kind in found)
    assert set(rule.fixes) == set(found), f"{rule.__name__}: fixes = ({shown}{',' * (len(set(found)) == 1)})"


@pytest.mark.parametrize("code", sorted(registry().keys() - {"DVL900", "DVL901"}))
def test_an_example_can_be_pasted(code: str) -> None:
    """It has the imports that it needs, and does what it is said to do as it stands."""
    sections = registry()[code].sections()
    for heading, fires in (("Example", True), ("Use instead", False)):
        (block,) = blocks(f"{sections[heading]}\n", "python")
        found = check_source(block, "example.py", Config().selecting(Selection((code,))))
        assert any(finding.code == code for finding in found) is fires, heading


def test_a_stale_table_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    generate = importlib.import_module("docs.generate")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "README", tmp_path / "README.md")
    monkeypatch.setattr(generate, "RULES", tmp_path / "rules.md")
    (tmp_path / "README.md").write_text(README.replace("| discarded-move |", "| dropped-move |"), encoding="utf-8")
    assert generate.main(["--check"]) == 1
    assert not (tmp_path / "rules.md").exists()
    assert generate.main([]) == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == README
    assert generate.main(["--check"]) == 0


def test_the_sample_output_is_what_devlint_prints() -> None:
    snippet = (ROOT / "docs" / "train.py").read_text(encoding="utf-8")
    assert blocks(README, "python")[0] == snippet
    done = run([sys.executable, "-m", "devlint", "check", "--isolated", "docs/train.py"], ROOT)
    assert done.returncode == 1
    assert blocks(README, "text")[0] == done.stdout


def test_the_sample_diff_is_what_devlint_prints() -> None:
    done = run([sys.executable, "-m", "devlint", "check", "--isolated", "docs/train.py", "--diff"], ROOT)
    assert done.returncode == 1
    assert blocks(README, "diff") == [done.stdout]


def test_the_sample_story_is_what_devlint_prints() -> None:
    done = run([sys.executable, "-m", "devlint", "where", "docs/train.py:11:criterion"], ROOT)
    assert done.returncode == 0
    assert blocks(TEXTS["docs/where.md"], "text") == [done.stdout.rstrip("\n") + "\n"]


NOTEBOOK = notebook(
    "%matplotlib inline\nimport torch",
    cell("# Some text", "markdown"),
    "!pip install torch\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
    "images = torch.ones(3)\nprint(images.shape)\nimages.to(device)",
)


def test_the_sample_of_a_notebook_is_what_devlint_prints(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "train.ipynb").write_bytes(NOTEBOOK)
    command = [sys.executable, "-m", "devlint", "check", "notebooks", "--select", "DVL102"]
    assert blocks(TEXTS["docs/notebooks.md"], "text") == [
        run([*command, "--output-format", "concise"], tmp_path).stdout
    ]


def _needs_a_simulated_accelerator() -> None:
    import torch

    if not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this torch is too old to simulate an accelerator on (before 2.10)")
    if torch.cuda.is_available():
        pytest.skip("a machine with a GPU does not simulate one")


def test_the_sample_report_is_what_the_audit_prints() -> None:
    """But for versions, the machine and the date; see docs/sample.py."""
    _needs_a_simulated_accelerator()
    done = run([sys.executable, "-m", "docs.sample", "--check"], ROOT)
    assert done.returncode == 0, done.stderr


def test_the_audit_of_a_notebook_works_as_shown(tmp_path: Path) -> None:
    """With a script around it that is as in need of advice as it can be small; see docs/audit.md."""
    _needs_a_simulated_accelerator()
    (block,) = blocks(TEXTS["docs/audit.md"], "python")
    before = """
import torch
def train(model, dataset):
    loader = torch.utils.data.DataLoader(dataset)
    model = model.to("cuda")
    optimizer = torch.optim.SGD(model.parameters())
    while True:
        for x in loader:
            model(x.to("cuda")).sum().backward()
            optimizer.step()
model, dataset = torch.nn.Linear(2, 2), torch.rand(32, 2)
"""
    code = before + block.replace("devlint.audit(", "devlint.audit(simulate=True, ")
    (tmp_path / "notebook.py").write_text(code, encoding="utf-8")
    done = run([sys.executable, "notebook.py"], tmp_path)
    assert "20 training (20 of SGD)" in done.stdout
    assert "warning[DVL301] missing-pin-memory" in done.stdout
    assert done.stderr.splitlines()[-1] == "AssertionError"  # something was found


def test_every_option_of_the_audit_is_documented() -> None:
    from devlint.cli import audit

    text = TEXTS["docs/audit.md"]
    options = {name for parameter in audit.params for name in parameter.opts if name.startswith("-")}
    missing = [name for name in options if f"`{name}" not in text]
    assert missing == ["--quiet"]  # as `-q`


@pytest.mark.parametrize("command", devlint_commands())
def test_a_command_runs_as_shown(command: str, tmp_path: Path) -> None:
    """Where `src/train.py` and `docs/train.py` are the README's snippet: a check finds something, all else succeeds."""
    shell = shutil.which("sh")
    if shell is None:
        pytest.skip("needs sh")
    for folder in ("src", "docs"):
        (tmp_path / folder).mkdir()
        shutil.copy(ROOT / "docs" / "train.py", tmp_path / folder)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "train.ipynb").write_bytes(NOTEBOOK)
    done = run([shell, "-c", f'devlint() {{ "$PYTHON" -m devlint "$@"; }}\n{command}'], tmp_path, PYTHON=sys.executable)
    assert done.returncode == int(command.startswith("devlint check")), done.stdout + done.stderr
    assert done.stdout or "--output-file" in command
    assert not done.stderr or "--diff" in command  # how much would be fixed


def test_the_way_into_an_old_repository_is_as_shown(tmp_path: Path) -> None:
    """All `$ ` commands of that section, one after the other, print what stands below them."""
    shell, git = shutil.which("sh"), shutil.which("git")
    if shell is None or git is None:
        pytest.skip("needs sh and git")
    (tmp_path / "src").mkdir()
    shutil.copy(ROOT / "docs" / "train.py", tmp_path / "src")
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "--quiet", "-b", "main"], ["add", "-A"], ["commit", "--quiet", "-m", "x"]):
        assert run([git, *identity, *command], tmp_path).returncode == 0
    section = README.partition("## Switching devlint on in an old repository\n")[2].partition("\n## ")[0]
    shown = "".join(blocks(section, "console"))
    printed = ""
    for line in shown.splitlines():
        if line.startswith("$ "):
            script = f'devlint() {{ "$PYTHON" -m devlint "$@"; }}\n{line[2:]} 2>&1'
            done = run([shell, "-c", script], tmp_path, PYTHON=sys.executable)
            printed += f"{line}\n{done.stdout}"
    assert printed == shown
    assert shown.count("$ devlint") == 4


def test_there_are_commands_to_run() -> None:
    assert "devlint check docs/train.py" in devlint_commands()
    assert len(devlint_commands()) > 5


def test_the_configuration_is_read_and_complete(tmp_path: Path) -> None:
    (block,) = blocks(README, "toml")
    file = tmp_path / "pyproject.toml"
    file.write_text(block.replace("\n# exclude", "\nexclude"), encoding="utf-8")
    config = load(str(file))
    assert config.target_torch == (2, 4)
    keys, *tables = re.split(r"^\[tool\.devlint\.([\w-]+).*$", block, flags=re.MULTILINE)
    shown = {*re.findall(r"^(?:# )?([a-z-]+) = ", keys, re.MULTILINE), *tables[::2]}
    assert shown == set(_READERS)


def test_the_suppressions_silence_what_they_are_said_to() -> None:
    _, block = blocks(README, "python")
    before = "import torch\n\n\ndef f(device, x: torch.Tensor):\n"
    text = before + "".join(f"    {line}\n" for line in block.splitlines())
    assert not check_source(text)
    bare = "\n".join(line.partition("#")[0].rstrip() for line in text.splitlines())
    assert [finding.code for finding in check_source(bare)] == ["DVL102", "DVL601", "DVL601"]


def test_the_hook_exists() -> None:
    yaml = pytest.importorskip("yaml", reason="comes with pre-commit")
    (block,) = blocks(README, "yaml")
    (repository,) = yaml.safe_load(block)["repos"]
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {hook["id"] for hook in repository["hooks"]} <= {hook["id"] for hook in hooks}


@pytest.mark.parametrize("block", blocks(TEXTS["docs/how-it-works.md"], "python"))
def test_an_explanation_is_true(block: str) -> None:
    lines = block.splitlines()
    expected = [(row, line.partition("# expect: ")[2]) for row, line in enumerate(lines, 1) if "# expect: " in line]
    assert [(finding.span.row, finding.code) for finding in check_source(block)] == expected


def test_the_example_of_a_new_rule_works(tmp_path: Path) -> None:
    for folder in ("devlint", "fixtures", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, block in zip(EXAMPLE_FILES, blocks(CONTRIBUTING, "python"), strict=True):
        assert name in CONTRIBUTING or Path(name).parent.name in CONTRIBUTING
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(block, encoding="utf-8")
    steps = next(block for block in blocks(CONTRIBUTING, "console") if "DVL399" in block)
    tests, check = (step.split()[1:] for step in steps.splitlines())
    options = ["-q", "-p", "no:cacheprovider"]
    done = run([sys.executable, *tests, *options], tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    done = run([sys.executable, *check], tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr  # a hint fails no run
    assert "info[DVL399]" in done.stdout
    for style in (["check"], ["format", "--check"]):
        done = run([sys.executable, "-m", "ruff", *style, "--no-cache", EXAMPLE_FILES[0]], tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_points_at_exists(page: str) -> None:
    folder = (ROOT / page).parent
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]) if "://" not in link]
    assert not [link for link in links if link and not (folder / link).exists()]
    paths = re.findall(r"`((?:devlint|tests|tools|docs|fixtures)/[\w./-]*)`", TEXTS[page])
    assert not [path for path in paths if not (ROOT / path).exists() and EXAMPLE not in path and "CODE" not in path]
    modules = re.findall(r"python -m ((?:tests|tools|docs)[\w.]*)", TEXTS[page])
    places = [ROOT.joinpath(*module.split(".")) for module in modules]
    assert not [str(place) for place in places if not (place.with_suffix(".py").exists() or place.is_dir())]
