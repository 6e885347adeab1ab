"""What is said of code that nothing uses is for those who select the rule."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from devlint.check.filters.dead_code import dead
from devlint.cli import main
from devlint.finding import Context, Finding, Severity, Span

LOSS = """\
import torch
from torch import nn


class Margin(nn.Module):
    def forward(self, x):
        return super(Margin, self).forward(x) + x.clamp(0, 1) * torch.zeros(2, 3)


def load(net, path):
    net.load_state_dict(torch.load(path))
"""
USED = "from loss import Margin, load\nload(Margin(), path)\n"
EPOCH = """\
def epoch(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which `train.py` uses all of `loss.py`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("# A project\n")
    (tmp_path / "loss.py").write_text(LOSS)
    (tmp_path / "train.py").write_text(USED)
    return tmp_path


def found(*options: str) -> list[str]:
    result = CliRunner().invoke(main, ["check", "--no-cache", "--output-format", "json", *options])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return [one["code"] for one in json.loads(result.stdout)]


def test_what_nothing_names_is_named_at_the_end_alone(root: Path) -> None:
    """Seen in faster-rcnn.pytorch: a module of a paper of which nothing is left but itself."""
    assert found(".") == found("loss.py") == ["DVL103", "DVL604"]
    # what is taken, and not named again, is not used
    (root / "train.py").write_text(USED.replace("Margin()", "net"))
    # the class names itself, as code for Python 2 does
    assert found(".") == found("loss.py") == ["DVL604"]
    assert found("--select", "DVL1", ".") == ["DVL103"]
    report = CliRunner().invoke(main, ["check", "--no-cache", "."]).stdout
    assert "  DVL103 forward-factory-without-device: loss.py:7" in report


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.yaml", "loss: Margin\n"),
        ("README.md", "# A project\n`Margin` is best.\n"),
        ("train.py", "import loss as zoo, load\nnet = zoo.__dict__[name]()\n"),
        ("train.py", "from loss import load\nfrom importlib import import_module\nnet = import_module(name)\n"),
        ("train.py", "from loss import load\nname = 'loss.' + args.loss\nnet = importlib.import_module(name)\n"),
        ("train.py", "import loss\nnet = getattr(loss, name)\n"),
        ("train.py", "from loss import load\nfrom zoo import nets\nnet = getattr(nets, args.net)\n"),
        ("train.py", "from loss import *\nnet = globals()[name]()\n"),
        ("train.py", "import loss\nfire.Fire(loss.load)\n"),
        ("train.py", "from loss import load\n\n\ndef make(models, name):\n    return models.__dict__[name]\n"),
        ("loss.py", LOSS.replace("class Margin", "@register\nclass Margin")),
        ("loss.py", f"{LOSS}\nDEFAULT = Margin()\n"),
    ],
)
def test_what_may_be_used_counts_as_used(root: Path, name: str, text: str) -> None:
    (root / "train.py").write_text("from loss import load\n")
    (root / "zoo").mkdir()
    (root / "zoo/nets.py").write_text("from loss import *\n")
    assert "DVL103" not in found(".")
    (root / name).write_text(text)
    assert "DVL103" in found(".")


@pytest.mark.parametrize(
    "text",
    [
        "import zoo\nnet = getattr(zoo, args.net)\n",
        "from zoo import nets as models\nnet = models.__dict__[args.arch]()\n",
        "net = importlib.import_module('zoo.' + name).Net\n",
        "net = importlib.import_module(f'zoo.{name}').Net\n",
        "from importlib import import_module\nname = f'zoo.{name}_net'\nnet = import_module(name)\n",
        "from zoo.nets import *\nnet = globals()[name]()\n",
        "class Options:\n    def get(self, key):\n        return self.__dict__[key]\n",
        "args.__dict__[key] = value\nshown = opt.__dict__[key]\n",
        "first = module.__dict__['first']\n",
        "import torch\nnet = getattr(torch.nn, name)\n",
    ],
)
def test_what_is_looked_up_uses_the_modules_in_which_it_is(root: Path, text: str) -> None:
    """Seen in once-for-all and swav: what is looked up elsewhere does not use a loss of which nobody speaks."""
    (root / "zoo").mkdir()
    (root / "zoo/nets.py").write_text("class Net:\n    pass\n")
    (root / "train.py").write_text(f"from loss import load\nload(net, path)\n{text}")
    assert found("loss.py") == ["DVL604"]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"pkg/api.py": "from loss import load\n"}, True),
        ({"pkg/api.py": "from loss import *\n"}, True),
        ({"pkg/__init__.py": "import loss as api\n"}, True),
        ({"pkg/api.py": "def load(path):\n    pass\n"}, False),
        ({"pkg/api.py": "from json import load\n"}, False),
    ],
)
def test_what_is_named_in_a_module_is_what_that_module_has(root: Path, files: dict[str, str], told: bool) -> None:
    """Seen in perception_models: a file that nobody imports, and another module with a function of that name."""
    (root / "pkg").mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    (root / "train.py").write_text("from loss import Margin\nfrom pkg import api\napi.load(Margin())\n")
    assert ("DVL604" in found("loss.py")) is told


@pytest.mark.parametrize(
    ("decorator", "told"),
    [
        ("torch.no_grad()", False),
        ("no_grad()", False),
        ("torch.jit.script", False),
        ("contextlib.contextmanager", False),
        ("functools.lru_cache(maxsize=None)", False),
        ("register", True),
        ("app.command()", True),
        ("torch.no_grad()\n@register", True),
        ("torch.jit.export", True),
    ],
)
def test_a_decorator_that_tells_nobody_uses_nothing(root: Path, decorator: str, told: bool) -> None:
    (root / "train.py").write_text("from loss import Margin\nMargin()\n")
    (root / "loss.py").write_text(LOSS.replace("def load", f"@{decorator}\ndef load"))
    assert ("DVL604" in found("loss.py")) is told


NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def restore(self, path, device):
        self.load_state_dict(torch.load(path))


def build(path, device):
    net = Net()
    net.load_state_dict(torch.load(path))
    return net


def small():
    return build("small.pt")
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("from net import Net, small\nsmall()\nNet().restore(path)\n", [7, 12]),
        # what only dead code calls is dead
        ("from net import Net\nNet().restore(path)\n", [7]),
        ("from net import *\nsmall()\n", [12]),
        # another file's own function of that name is another one
        ("import net\nbuild = net.build\n\n\ndef small():\n    pass\n\n\nsmall()\nnet.Net().restore(path)\n", [7, 12]),
        ("def build():\n    pass\n\n\ndef small():\n    pass\n\n\nsmall(build())\n", []),
        # what another library has under that name is another one, too; an object may have anything
        ("import torch\ntorch.small()\ntorch.nn.build()\n", []),
        ("import numpy as net\nnet.small()\n", []),
        ("from train import anything\nanything.small()\n", [12]),
        ("import numpy as net\nimport net\nnet.small()\n", [12]),
        # what another file only takes, or names in what is as dead; under another name, nobody knows
        ("from net import small\n", []),
        ("import net\n\n\ndef unused():\n    return net.small()\n", []),
        ("from net import small as tiny\ntiny()\n", [12]),
        ("import net\n\n\ndef used():\n    return net.small()\n\n\nused()\n", [12]),
        # seen in CLAP: what is commented out names nothing
        ("from net import Net\nNet().restore(path)\n# small()\n", [7]),
        # an architecture that is looked up in a library is none of the project's
        ("import torchvision.models as models\nmodels.__dict__[arch]()\n", []),
        ("import net\nnet.__dict__[arch]()\n", [7, 12]),
        # a variable of that name, an attribute of an object, and what another library has mean something else
        ("from net import Net\nNet().restore(path)\nsmall = build = 0\nprint(small, args.build)\n", [7]),
        ("from zoo import small\nsmall()\n", []),
        ("settings = {'small': 0}\nprint(settings['small'])\n", []),
        ("from net import small\n__all__ = ['small']\n", []),
        ("getattr(net, 'small')()\n", [12]),
        ("import net\nnet.zoo.small()\n", [12]),
    ],
)
def test_methods_and_what_only_the_dead_call_are_dead(root: Path, text: str, told: list[int]) -> None:
    (root / "net.py").write_text(NET)
    (root / "loss.py").unlink()
    (root / "train.py").write_text(text)
    result = CliRunner().invoke(main, ["check", "--no-cache", "--output-format", "json", "net.py"])
    hints = json.loads(result.stdout)
    rows = [[one["location"]["row"], *(other["location"]["row"] for other in one["related"])] for one in hints]
    assert [row for told_with in rows for row in told_with] == told


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"train.py": "from tools.net import small\nsmall()\n", "tools/net.py": "def small():\n    pass\n"}, []),
        ({"train.py": "from tools import small\nsmall()\n", "tools/__init__.py": "from .more import small\n"}, []),
        ({"train.py": "from tools import small\nsmall()\n", "tools/__init__.py": "from net import small\n"}, [12]),
        ({"train.py": "from tools import small\nsmall()\n", "tools/__init__.py": "from net import *\n"}, [12]),
        ({"train.py": "from tools import small\nsmall()\n", "tools/__init__.py": "from ..net import small\n"}, [12]),
        ({"tools/run.py": "from net import small\nsmall()\n", "tools/net.py": "from nets import small\n"}, []),
        ({"tools/run.py": "from net import small\nsmall()\n"}, [12]),
        ({"tools/run.py": "from project.net import small\nsmall()\n"}, []),
    ],
)
def test_a_name_means_what_the_import_leads_to(root: Path, files: dict[str, str], told: list[int]) -> None:
    """Seen in fast3r and ttt-video-dit: functions of one name in several files, of which one is used."""
    for name in ("loss.py", "train.py"):
        (root / name).unlink()
    (root / "net.py").write_text(NET.replace("restore", "_restore"))
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    result = CliRunner().invoke(main, ["check", "--no-cache", "--output-format", "json", "net.py"])
    hints = [(one, *one["related"]) for one in json.loads(result.stdout)]
    rows = {place["location"]["row"] for hint in hints for place in hint}
    assert sorted(rows & {12}) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("The small one is best.", False),
        ("Call `small` first.", True),
        ("    from net import small", True),
        ("    small(2)", True),
        ("small: 3", False),
    ],
)
def test_prose_has_words_that_name_nothing(root: Path, text: str, told: bool) -> None:
    (root / "net.py").write_text(NET)
    (root / "train.py").write_text("from net import Net\nNet()\n")
    (root / "README.md").write_text(f"# Nets\n{text}\n")
    result = CliRunner().invoke(main, ["check", "--no-cache", "--output-format", "json", "net.py"])
    assert [one["location"]["row"] for one in json.loads(result.stdout)] == ([12] if told else [])


def test_what_nests_too_deeply_may_name_anything(root: Path) -> None:
    (root / "train.py").write_text("from loss import Margin\nMargin()\nsize = " + " + ".join(["load"] * 3_000) + "\n")
    assert found("loss.py") == ["DVL103", "DVL604"]


def test_what_a_class_derived_from_a_library_s_calls_is_not_known(root: Path) -> None:
    (root / "train.py").write_text("from net import Net\nNet()\n")
    for base, told in (("nn.Module", []), ("Base", []), ("lightning.LightningModule", ["DVL604"])):
        text = NET.partition("def build")[0].replace("nn.Module", base)
        (root / "net.py").write_text(
            text.replace("\n\n\nclass Net", "\n\n\nclass Base(nn.Module):\n    pass\n\n\nclass Net")
        )
        assert found("net.py") == told


def test_what_a_module_offers_is_used_where_somebody_takes_it(root: Path) -> None:
    (root / "train.py").write_text("from net import *\n")
    (root / "net.py").write_text(f"{NET}\n\n__all__ = [\n    'build',\n    'small',\n]\n")
    assert found("net.py") == []
    (root / "train.py").write_text("from net import small\nsmall()\n")
    assert found("net.py") == ["DVL604"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("setup.py", "from setuptools import setup\nsetup(name='losses', packages=['losses'])\n"),
        ("pyproject.toml", "[project]\nname = 'losses'\n"),
    ],
)
@pytest.mark.parametrize(
    ("inside", "offers", "told"),
    [
        ("", "", []),
        ("", "from .loss import *\n", ["DVL103", "DVL604"]),
        ("", "from .loss import Margin, load\n", ["DVL103", "DVL604"]),
        ("\n__all__ = ['Margin', 'load']\n", "", ["DVL103", "DVL604"]),
    ],
)
def test_what_others_install_is_used_by_them_where_a_package_offers_it(
    root: Path, name: str, text: str, inside: str, offers: str, told: list[str]
) -> None:
    """More than a hint is told of in any case: others can reach all of it."""
    (root / "loss.py").unlink()
    (root / "train.py").unlink()
    (root / "losses").mkdir()
    (root / "losses/loss.py").write_text(LOSS + inside)
    (root / "losses/__init__.py").write_text(offers)
    (root / name).write_text(text)
    (root / "README.md").write_text("# Losses\n\n    pip install -U losses\n")
    assert found(".") == told
    (root / "losses/loss.py").write_text(EPOCH + inside)
    assert found(".") == ["DVL403"]


@pytest.mark.parametrize(
    ("readme", "told"),
    [
        ("pip install losses", True),
        ("`uv add 'losses[all]'`", True),
        ("conda install -c forge losses", True),
        ("[![version](https://img.shields.io/pypi/v/losses.svg)](https://example.org)", True),
        ("pip install -e .", False),
        ("pip install git+https://example.org/who/losses.git", False),
        ("pip install --editable losses", False),
        ("pip install torch", False),
        ("# Install losses", False),
        ("[torch](https://pypi.org/project/torch)", False),
    ],
)
def test_what_can_be_had_from_its_repository_alone_is_used_there(root: Path, readme: str, told: bool) -> None:
    """Seen in vmc_torch: an installable package of one author's experiments."""
    (root / "train.py").unlink()
    (root / "pyproject.toml").write_text("[project]\nname = 'losses'\n")
    (root / "loss.py").write_text(EPOCH)
    (root / "README.md").write_text(readme + "\n")
    assert found(".") == (["DVL403"] if told else [])


def test_an_error_is_told_of_unless_its_call_was_given_up_and_so_is_what_nobody_can_know(root: Path) -> None:
    """Seen in Metric3D: a loss whose only call is commented out. What is new, nothing need call yet."""
    (root / "train.py").write_text("from loss import load\nload(net, path)\n")
    discarded = "\n\ndef unused(x: torch.Tensor, device):\n    x.to(device)\n    return x\n"
    for comment, told in (("\n# unused(x, device)\n", []), ("\n# unused\n", ["DVL102"]), ("", ["DVL102"])):
        (root / "loss.py").write_text(LOSS + discarded + comment)
        assert found(".") == ["DVL604", *told]
    (root / "train.py").write_text("import loss\nnet = getattr(loss, name)\nloss.load(net, path)\n")
    for comment, told in (("\n# unused(x, device)\n", []), ("", ["DVL102"])):
        (root / "loss.py").write_text(LOSS + discarded + comment)
        assert found(".") == ["DVL103", "DVL604", *told], "nobody looks up what was given up"
    (root / "train.py").write_text("from loss import load\nload(net, path)\n")
    (root / "README.md").unlink()
    # where the project begins, and what else may use it, is not known
    assert found(".") == ["DVL103", "DVL604", "DVL102"]


def test_tests_are_used_by_who_runs_them(root: Path) -> None:
    span, around = Span(4, 1, 4, 2), Context("check_sum", "check_sum()", (4, 4))
    for name, told in (("test_sums.py", []), ("sums.py", ["sums.py"])):
        (root / name).write_text("import torch\n\n\ndef check_sum():\n    pass\n")
        one = Finding("DVL604", "load-without-map-location", Severity.WARNING, "", name, span, context=around)
        assert [finding.filename for finding in dead([one])] == told
        (root / name).unlink()


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("    return 0\n", []),
        ("    return epoch(model, loader, optimizer)\n", ["DVL403"]),
        ("    return locals()[model.name](model, loader, optimizer)\n", ["DVL403"]),
        ("    runs = [lambda: epoch(model, loader, optimizer)]\n    return runs\n", ["DVL403"]),
    ],
    ids=["not named", "called", "found by its name", "called by another one inside"],
)
@pytest.mark.parametrize("name", ["README.md", "pyproject.toml"])
def test_a_function_inside_of_another_is_named_there_or_by_nobody(
    root: Path, name: str, rest: str, told: list[str]
) -> None:
    """Seen in pytorch_explain_and_adapt_library: an epoch that was written out once more further down."""
    (root / name).write_text('[project]\nname = "losses"\n')
    inner = textwrap.indent(EPOCH, "    ")
    (root / "loss.py").write_text(f"def fit(model, loader, optimizer):\n{inner}{rest}")
    (root / "train.py").write_text("from loss import fit\nfit(model, loader, optimizer)\n")
    assert found(".") == told
    (root / "loss.py").write_text(f"def fit(model, loader, optimizer):\n    @register\n{inner}{rest}")
    assert found(".") == ["DVL403"]
