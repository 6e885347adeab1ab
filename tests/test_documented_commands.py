"""Every command that a page shows is run, or listed here with the reason why not; its options exist in any case."""

from __future__ import annotations

import functools
import re
import shlex
import shutil
import sys
from pathlib import Path

import click
import pytest

from devlint.cli import main
from tests.documented import BLOCK, NOTEBOOK, ROOT, TEXTS, blocks, needs_a_simulated_accelerator, run

GPU = "needs a GPU"
SLURM = "needs SLURM"
SHELLS = ("console", "sh")
SESSIONS = ("docs/getting-started.md", "docs/adopting.md", "docs/prove.md")
"""Their commands run in docs/transcripts.py, one after the other."""
TRIED = ("docs/html-report.md", "docs/compare.md", "docs/models.md", "docs/simulator.md", "docs/teaching.md")
"""Their commands run in tests of their own, in their order: tests/test_audit_pages.py, and tests of what they show."""
NOT_RUN = {
    "devlint audit train.py --epochs 1": GPU,
    "devlint audit --steps 50 train.py": GPU,
    "devlint audit --html report.html train.py": GPU,
    "devlint audit --output run.json train.py": GPU,
    "torchrun --nproc-per-node=8 -m devlint audit --steps 50 --exit-zero --output run.json train.py --epochs 1": GPU,
    "torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=node0:29500 "
    "-m devlint audit --exit-zero --output run.json train.py": "needs two machines with GPUs",
    "srun --ntasks-per-node=1 torchrun --nnodes=$SLURM_NNODES --nproc-per-node=8 --rdzv-backend=c10d "
    "--rdzv-endpoint=$HEAD:29500 -m devlint audit --steps 50 --exit-zero "
    "--output runs/$SLURM_JOB_ID.json train.py": SLURM,
    'HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)': SLURM,
    "devlint report runs/$SLURM_JOB_ID*.json": SLURM,
    "devlint report worker0.1623143089861.pt.trace.json.gz": "needs the recording, of another repository",
    "devlint check --select DVL203 cuda.ipynb": "needs the notebook, of another repository",
    "devlint check --evidence worker0.1623143089861.pt.trace.json.gz --select DVL301 resnet50_profiler_api.py": (
        "needs the recording and its script, of another repository"
    ),
    "devlint check src --output-format rdjson | reviewdog -f=rdjson -reporter=github-pr-review": "needs reviewdog",
    "python -m pip install .": "installs: .ci/run and tests/test_packaging.py",
    "HATCH_BUILD_HOOK_ENABLE_CUSTOM=1 python -m pip install .": "installs: tests/compiling/test_compiled.py",
    "HATCH_BUILD_HOOK_ENABLE_CUSTOM=1 python -m pip wheel --no-deps .": "tests/compiling/test_compiled.py",
    "python -m pip install -c constraints.txt -e '.[test]'": "installs: .ci/run",
    "python -m pip install 'devlint[html]'": "installs",
    "python -m pip install 'devlint[server]'": "installs",
    "python -m pip install devlint": "installs: tools/releasing",
    "python -m pip install 'devlint[audit,html,server]'": "installs",
    "python -m venv .venv": "makes an environment for what is installed next",
    "source .venv/bin/activate": "makes an environment for what is installed next",
    "python -m pytest -n auto": ".ci/run does",
    "python -m pytest -n auto -m slow": ".ci/run does",
    "pre-commit install": "needs the network afterwards: tests/test_pre_commit.py",
    "pre-commit run devlint --all-files": "needs the network: tests/test_pre_commit.py",
    "pre-commit try-repo REPOSITORY devlint --all-files": "needs the network: tests/test_pre_commit.py",
}
"""What cannot run here, and why."""
OF_MAINTAINERS = re.compile(r"python -m ((docs|tests|tools)\.|pytest tests/|devlint check fixtures/)")
"""Measurements that take long or need other repositories, and the example that test_documentation.py carries out."""


def split(block: str) -> list[str]:
    """The commands of a block; of a session on a terminal, what stands behind the prompt."""
    lines = [re.split(r"\s{2,}#", line)[0].strip() for line in block.splitlines()]
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [part.strip() for line in lines for part in line.split(" && ") if part]


def of_maintainers() -> list[str]:
    commands = {command for text in TEXTS.values() for block in blocks(text, "console") for command in split(block)}
    return sorted(command for command in commands if re.match(r"python -m (docs|tests|tools)\.", command))


def shown(*but: str) -> list[str]:
    """The commands in the blocks of all other pages, and `devlint ...` in the text of all."""
    found = [
        command
        for page, text in TEXTS.items()
        if page not in but
        for language in SHELLS
        for block in blocks(text, language)
        if page not in SESSIONS or not re.search(r"^\$ ", block, re.MULTILINE)
        for command in split(block)
    ]
    return sorted({command for command in found if not OF_MAINTAINERS.match(command)})


def in_text() -> list[str]:
    """`devlint ...` between backticks in the text, which may be the beginning of a command only."""
    return sorted(
        {words for text in TEXTS.values() for words in re.findall(r"`(devlint [^`\n]+)`", BLOCK.sub("", text))}
    )


def in_other_files() -> list[str]:
    """The commands in examples of YAML, Groovy and the like."""
    other = [body for text in TEXTS.values() for kind, body in BLOCK.findall(text) if kind in ("yaml", "groovy")]
    lines = [
        found for body in other for found in re.findall(r"(?:- |run: |script: |entry: |')(devlint .*)$", body, re.M)
    ]
    return sorted({line.rstrip("'") for line in lines})


def in_sessions() -> list[str]:
    return [command for page in SESSIONS for block in blocks(TEXTS[page], "console") for command in split(block)]


def arguments(command: str) -> list[str]:
    """What devlint gets of a command, without redirections and what stands behind a pipe."""
    words = shlex.split(command.partition(" | ")[0].partition(" < ")[0].partition(" 2>")[0])
    words = shlex.split(words[words.index("-c") + 1]) if "bash" in words else words
    return words[words.index("devlint") + 1 :] if "devlint" in words else []


def parse(words: list[str]) -> click.Context:
    """A ClickException says what is wrong with them."""
    # a command keeps the help option that its first context names, which is that of the program
    program = click.Context(main, **main.context_settings)
    return main.commands[words[0]].make_context(words[0], words[1:], program)


@pytest.mark.parametrize("command", sorted({*shown(), *in_sessions(), *in_other_files()}))
def test_a_command_has_only_options_that_exist(command: str) -> None:
    words = arguments(command)
    if words and "git" not in command.split() and not command.startswith(("pre-commit", "python -m pip")):
        parse(words)


@pytest.mark.parametrize("command", in_text())
def test_a_command_in_the_text_has_only_options_that_exist(command: str) -> None:
    _, name, *words = shlex.split(command)
    words = words if name in main.commands else [name]
    program = main.commands.get(name, main)
    known = {option for parameter in program.params for option in parameter.opts}
    if name == "audit":
        words = words[: next((at for at, word in enumerate(words) if word.endswith(".py")), None)]
    assert {word.partition("=")[0] for word in words if word.startswith("-")} - {"--help"} <= known


def test_an_option_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(click.NoSuchOption):
        parse(arguments("devlint check src --fixx  # as it was once called"))
    with pytest.raises(click.NoSuchOption):
        parse(arguments("torchrun -m devlint audit --step 3 train.py"))
    with pytest.raises(click.NoSuchOption):
        parse(arguments("srun bash -c 'torchrun -m devlint audit --step 3 train.py'"))


def test_what_is_not_run_is_shown_somewhere() -> None:
    assert NOT_RUN.keys() <= set(shown()), "and nothing is listed that no page shows any more"


@pytest.mark.parametrize("command", of_maintainers())
def test_a_command_for_maintainers_has_only_options_that_exist(command: str) -> None:
    """As far as the module's text says, since to ask it takes as long as to import it."""
    module, *words = shlex.split(command)[2:]
    place = ROOT.joinpath(*module.split("."))
    files = [place.with_suffix(".py")] if place.with_suffix(".py").exists() else sorted(place.glob("*.py"))
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    assert files
    assert not [word for word in words if word.startswith("-") and f'"{word}"' not in text]


def runnable() -> list[str]:
    """The commands that stand for themselves, and whole commands in the text and in other files."""
    whole = [command for command in in_text() if re.match(r"devlint (check|rule|where) [^-]", command)]
    return sorted({*shown(*TRIED), *whole, *in_other_files()} - NOT_RUN.keys())


@functools.cache
def record() -> bytes:
    """An audit of docs/digits.py under the name train.py."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        shutil.copy(ROOT / "docs" / "digits.py", Path(name) / "train.py")
        command = "audit --simulate --exit-zero --output run.json train.py".split()
        done = run([sys.executable, "-m", "devlint", *command], Path(name), TMPDIR=name)
        assert done.returncode == 0, done.stderr
        return (Path(name) / "run.json").read_bytes()


def sample(folder: Path, command: str) -> None:
    """A repository with the README's snippet in `src/` and `docs/`, a script to audit, a notebook and records."""
    for name in ("src", "docs", "notebooks"):
        (folder / name).mkdir()
    for name in ("src", "docs"):
        shutil.copy(ROOT / "docs" / "train.py", folder / name)
    (folder / "notebooks" / "train.ipynb").write_bytes(NOTEBOOK)
    ranks = [block for block in blocks(TEXTS["docs/cluster.md"], "python") if command.startswith("torchrun")]
    script = ranks[0] if ranks else (ROOT / "docs" / "digits.py").read_text(encoding="utf-8")
    (folder / "train.py").write_text(script, encoding="utf-8")
    for name in re.findall(r"[\w*/.]+\.json\b", command) if "--output" not in command.split() else ():
        needs_a_simulated_accelerator()
        path = folder / name.replace("*", "0")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(record())
    if "--since" in command:
        git = shutil.which("git")
        if git is None:
            pytest.skip("needs git")
        before = "-c user.name=t -c user.email=t@example.org commit --quiet --allow-empty -m x"
        for words in ("init --quiet -b main", before, "checkout --quiet -b work"):
            assert run([git, *words.split()], folder).returncode == 0


def slow(command: str) -> bool:
    """Whether several processes import torch."""
    return command.startswith("torchrun")


@pytest.mark.parametrize(
    "command", [pytest.param(command, marks=pytest.mark.slow if slow(command) else ()) for command in runnable()]
)
def test_a_command_runs_as_shown(command: str, tmp_path: Path) -> None:
    """A check and an audit find something, all else succeeds."""
    shell = shutil.which("sh")
    if shell is None:
        pytest.skip("needs sh")
    if "--simulate" in command:
        needs_a_simulated_accelerator()
    sample(tmp_path, command)
    functions = 'devlint() { "$PYTHON" -m devlint "$@"; }\ntorchrun() { "$PYTHON" -m torch.distributed.run "$@"; }\n'
    if "--html" in command:
        pytest.importorskip("vl_convert", reason="needs the extra `html`")
    done = run([shell, "-c", functions + command], tmp_path, PYTHON=sys.executable, OMP_NUM_THREADS="1")
    finds = re.match(r"devlint (check|audit)", command) and "--exit-zero" not in command
    assert done.returncode == int(bool(finds)), done.stdout + done.stderr
    assert done.stdout or "--output" in command or "--output-file" in command or "--html" in command
    quiet = "audit" not in command and "--diff" not in command and "--html" not in command
    assert not done.stderr or not quiet, "only a report of an audit, or how much would be fixed, goes there"


def test_there_are_commands_to_run() -> None:
    assert {"devlint check docs/train.py", "devlint report run.json"} <= set(runnable())
    assert "devlint check train.py --diff" in in_sessions()
    assert "devlint check src/" in in_other_files()
