"""The documentation is held to the code: tables are current, commands run, examples do what they are said to do."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from devlint.check.analysis import check_source
from devlint.config.load import load
from devlint.config.schema import Config, RuleLayer
from devlint.config.values import READERS
from devlint.finding import Applicability
from devlint.rules.registry import registry
from devlint.rules.selection import validate
from tests.documented import (
    BLOCK,
    NOTEBOOK,
    PAGES,
    ROOT,
    TEXTS,
    blocks,
    needs_a_simulated_accelerator,
    needs_expressions,
    run,
)

README, CONTRIBUTING = TEXTS["README.md"], TEXTS["CONTRIBUTING.md"]
# A name for the example of CONTRIBUTING.md, and the files that it tells to write.
EXAMPLE = "unpinned_async_copy"
EXAMPLE_FILES = (
    f"devlint/rules/loading/{EXAMPLE}.py",
    f"fixtures/rules/DVL399_{EXAMPLE}/bad.py",
    f"fixtures/rules/DVL399_{EXAMPLE}/good.py",
)


def test_what_is_generated_is_current() -> None:
    done = run([sys.executable, "-m", "docs.generate", "--check"], ROOT)
    assert done.returncode == 0, done.stderr


def test_a_change_of_a_docstring_makes_the_documentation_stale(tmp_path: Path) -> None:
    """The command as it is run, in a copy where a rule says something else."""
    for folder in (
        "devlint",
        "docs",
        "tests/accuracy",
        "tests/benchmarks",
        "tests/ecosystem",
        "tests/prove",
        "tests/recordings",
    ):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    check = [sys.executable, "-m", "docs.generate", "--check"]
    assert run(check, tmp_path, PYTHONPATH=str(tmp_path)).returncode == 0
    rule = tmp_path / "devlint" / "rules" / "placement" / "discarded_move.py"
    text = rule.read_text(encoding="utf-8")
    for old, new, stale in (
        ("## Why it matters\n", "## Why it matters\n    Otherwise.\n", ["docs/rules.md"]),
        ("Severity.ERROR", "Severity.WARNING", ["docs/rules.md"]),
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
    everything = Config().selecting(RuleLayer(("ALL",)))
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
        found = check_source(block, "example.py", Config().selecting(RuleLayer((code,))))
        assert any(finding.code == code for finding in found) is fires, heading


def test_a_stale_table_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    generate = importlib.import_module("docs.generate")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "AUDIT", tmp_path / "audit.md")
    monkeypatch.setattr(generate, "RULES", tmp_path / "rules.md")
    current = TEXTS["docs/audit.md"]
    assert " redundant-move\n" in current
    (tmp_path / "audit.md").write_text(current.replace(" redundant-move\n", " a-move\n"), encoding="utf-8")
    assert generate.main(["--check"]) == 1
    assert not (tmp_path / "rules.md").exists()
    assert generate.main([]) == 0
    assert (tmp_path / "audit.md").read_text(encoding="utf-8") == current
    assert generate.main(["--check"]) == 0


def test_the_sample_output_is_what_devlint_prints() -> None:
    snippet = (ROOT / "docs" / "train.py").read_text(encoding="utf-8")
    assert blocks(README, "python") == [snippet]
    done = run([sys.executable, "-m", "devlint", "check", "--isolated", "docs/train.py"], ROOT)
    assert done.returncode == 1
    assert blocks(README, "text") == [done.stdout]


def test_the_sample_diff_is_what_devlint_prints() -> None:
    done = run([sys.executable, "-m", "devlint", "check", "--isolated", "docs/train.py", "--diff"], ROOT)
    assert done.returncode == 1
    assert blocks(TEXTS["docs/check.md"], "diff") == [done.stdout]


def test_the_sample_story_is_what_devlint_prints() -> None:
    done = run([sys.executable, "-m", "devlint", "where", "docs/train.py:11:criterion"], ROOT)
    assert done.returncode == 0
    assert blocks(TEXTS["docs/where.md"], "text") == [done.stdout.rstrip("\n") + "\n"]


def test_the_sample_of_a_notebook_is_what_devlint_prints(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "train.ipynb").write_bytes(NOTEBOOK)
    command = [sys.executable, "-m", "devlint", "check", "notebooks", "--select", "DVL102"]
    assert blocks(TEXTS["docs/notebooks.md"], "text") == [
        run([*command, "--output-format", "concise"], tmp_path).stdout
    ]


def test_the_sample_report_is_what_the_audit_prints() -> None:
    """But for versions, the machine and the date; see docs/sample.py."""
    needs_expressions()
    done = run([sys.executable, "-m", "docs.sample", "--check"], ROOT)
    assert done.returncode == 0, done.stderr


def test_the_audit_of_a_notebook_works_as_shown(tmp_path: Path) -> None:
    """With a script around it that is as in need of advice as it can be small; see docs/audit.md."""
    needs_a_simulated_accelerator()
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


def test_the_configuration_is_read_and_complete(tmp_path: Path) -> None:
    (block,) = blocks(TEXTS["docs/configuration.md"], "toml")
    file = tmp_path / "pyproject.toml"
    file.write_text(re.sub(r"^# (?=[a-z-]+ = )", "", block, flags=re.MULTILINE), encoding="utf-8")
    config = load(str(file), validate)
    assert (config.target_torch, config.no_cache, config.baseline) == (
        (2, 4),
        True,
        str(tmp_path / "devlint-baseline.json"),
    )
    file.write_text(block, encoding="utf-8")
    shutil.copy(ROOT / "docs" / "train.py", tmp_path)
    done = run([sys.executable, "-m", "devlint", "check"], tmp_path)
    assert (done.returncode, done.stderr) == (1, "")  # as it stands it needs nothing that is not there
    keys, *tables = re.split(r"^\[tool\.devlint\.([\w-]+).*$", block, flags=re.MULTILINE)
    shown = {*re.findall(r"^(?:# )?([a-z-]+) = ", keys, re.MULTILINE), *tables[::2]}
    assert shown == set(READERS)


def test_the_suppressions_silence_what_they_are_said_to() -> None:
    (block,) = blocks(TEXTS["docs/configuration.md"], "python")
    before = "import torch\n\n\ndef f(device, x: torch.Tensor):\n"
    text = before + "".join(f"    {line}\n" for line in block.splitlines())
    assert not check_source(text)
    bare = "\n".join(line.partition("#")[0].rstrip() for line in text.splitlines())
    every = Config(rule_layers=(RuleLayer(("ALL",)),))
    assert not check_source(text, config=every)
    assert [finding.code for finding in check_source(bare, config=every)] == ["DVL102", "DVL601", "DVL601"]


@pytest.mark.parametrize("page", ["docs/getting-started.md", "docs/pre-commit.md"])
def test_the_hook_exists(page: str) -> None:
    yaml = pytest.importorskip("yaml", reason="comes with pre-commit")
    (repository,) = yaml.safe_load(blocks(TEXTS[page], "yaml")[0])["repos"]
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


def anchors(text: str) -> set[str]:
    """The places that a page's headings make, by GitHub's way to name them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_has_every_page() -> None:
    linked = re.findall(r"\]\(([\w./-]+)", TEXTS["docs/README.md"])
    pages = {os.path.relpath(page, "docs") for page in PAGES} - {"README.md"}
    assert pages <= set(linked)


@pytest.mark.slow
def test_the_sessions_print_what_is_shown() -> None:
    """But for versions, the machine and the date; see docs/transcripts.py."""
    needs_expressions()
    if shutil.which("sh") is None or shutil.which("git") is None:
        pytest.skip("needs sh and git")
    done = run([sys.executable, "-m", "docs.transcripts", "--check"], ROOT)
    assert done.returncode == 0, done.stderr


def test_a_session_that_prints_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if shutil.which("sh") is None:
        pytest.skip("needs sh")
    monkeypatch.syspath_prepend(str(ROOT))
    transcripts = importlib.import_module("docs.transcripts")
    (tmp_path / "train.py").write_text("a = 1\nb = 2\n", encoding="utf-8")
    page = "```diff\n-b = 2\n+b = 3\n```\ntext\n```console\n$ cat train.py\n{}$ true\n$ nope 2>/dev/null\n```\n"
    printed = transcripts.session(page.format("b = 2\n"), tmp_path, Path("train.py"))
    assert printed == page.format("a = 1\nb = 3\n")
    with pytest.raises(SystemExit, match="has not this to change"):
        transcripts.session("```diff\n-c = 2\n```", tmp_path, Path("train.py"))


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_points_at_exists(page: str) -> None:
    folder = (ROOT / page).parent
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]) if "://" not in link]
    links += [link.partition("#") for link in re.findall(r' src="([^"]+)"', TEXTS[page])]
    assert not [link for link, _, _ in links if link and not (folder / link).exists()]
    for link, _, place in links:
        target = (folder / link).resolve() if link else ROOT / page
        if place:
            assert place in anchors(target.read_text(encoding="utf-8")), f"{link}#{place}"
    paths = re.findall(r"`((?:devlint|tests|tools|docs|fixtures)/[\w./-]*)`", TEXTS[page])
    assert not [path for path in paths if not (ROOT / path).exists() and EXAMPLE not in path and "CODE" not in path]
    modules = re.findall(r"python -m ((?:tests|tools|docs)[\w.]*)", TEXTS[page])
    places = [ROOT.joinpath(*module.split(".")) for module in modules]
    assert not [str(place) for place in places if not (place.with_suffix(".py").exists() or place.is_dir())]
