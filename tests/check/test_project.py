"""The project around a file: which file a dotted name means, and what is looked at for it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from devlint.check.analysis import check_source
from devlint.check.discovery.target import Target
from devlint.check.engine import check_paths
from devlint.check.project import view
from devlint.check.project.content import Content, digest_of
from devlint.check.project.modules import Name
from devlint.cli import main
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding

MISMATCHES = Config(rule_layers=(RuleLayer(("DVL101",)),))
HELPERS = """\
import torch


def mask(size):
    return torch.ones(size)
"""
USE = """\
import torch
{imports}


def use(x: torch.Tensor, device):
    return x.to(device) + {call}(3)
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    view.begin()

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    return write


def use(imports: str, call: str = "mask") -> str:
    return USE.format(imports=imports, call=call)


def found(*paths: str) -> list[Finding]:
    result = check_paths(paths or ["."], MISMATCHES)
    assert not result.errors
    return result.findings


def around(filename: str, given: str = "") -> view.ProjectView:
    return view.view_of(Target(filename, 0, Config(), os.path.abspath(given) if given else ""))


@pytest.mark.parametrize(
    ("name", "helpers", "imports", "call"),
    [
        ("pkg/a.py", "pkg/helpers.py", "from .helpers import mask", "mask"),
        ("pkg/sub/a.py", "pkg/helpers.py", "from ..helpers import mask as made", "made"),
        ("pkg/a.py", "pkg/helpers.py", "from . import helpers", "helpers.mask"),
        ("pkg/a.py", "pkg/helpers.py", "import pkg.helpers as h", "h.mask"),
        ("pkg/a.py", "pkg/helpers.py", "import pkg.helpers", "pkg.helpers.mask"),
        ("a.py", "helpers.py", "from helpers import mask", "mask"),
        ("a.py", "helpers.py", "from helpers import *", "mask"),
        ("scripts/a.py", "src/lib/helpers.py", "from lib.helpers import mask", "mask"),
        ("scripts/a.py", "space/without/init/helpers.py", "from space.without.init.helpers import mask", "mask"),
        ("a.py", "helpers/__init__.py", "from helpers import mask", "mask"),
    ],
)
def test_what_an_import_means(tree, name: str, helpers: str, imports: str, call: str) -> None:
    tree({name: use(imports, call), helpers: HELPERS})
    if name.startswith("pkg"):
        tree({"pkg/__init__.py": "", "pkg/sub/__init__.py": ""})
    (finding,) = found()
    assert finding.filename == name
    assert {place.filename for place in finding.related} == {"", helpers}
    assert (finding.span.row, finding.message.split()[0]) == (6, f"`{call}(3)`")


@pytest.mark.parametrize(
    "package",
    [
        "from .helpers import mask",
        "from .helpers import *",
        "from .between import mask",
    ],
)
def test_a_package_may_hand_on_what_its_modules_define(tree, package: str) -> None:
    between = "from .helpers import mask\n"
    tree({"pkg/__init__.py": package, "pkg/helpers.py": HELPERS, "pkg/between.py": between})
    tree({"a.py": use("from pkg import mask")})
    assert len(found()) == 1


def test_a_function_may_have_the_name_of_its_module(tree) -> None:
    tree({"pkg/__init__.py": "from .mask import mask\n", "pkg/mask.py": HELPERS, "a.py": use("from pkg import mask")})
    assert len(found()) == 1


@pytest.mark.parametrize("path", ["pkg", "pkg/a.py", "."])
def test_a_file_gives_the_same_findings_however_it_is_named(tree, path: str) -> None:
    tree({"pkg/__init__.py": "", "pkg/helpers.py": HELPERS, "pkg/a.py": use("from pkg.helpers import mask")})
    assert len(found(path)) == 1


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"helpers.py": "def mask(:\n"},
        {"helpers.py": "\0"},
        {"helpers.py": "import a\nfrom a import mask\n"},
        {"helpers.py": "from helpers import mask\n"},
        {"helpers.py": "from helpers import *\n"},
        {"helpers/nothing.txt": ""},
        {"helpers.py": HELPERS, "src/helpers.py": HELPERS},
        {"helpers.py": f"{HELPERS}\nmask = print\n"},
        {"helpers.py": HELPERS.replace("def", "@wrapped\ndef")},
        {"helpers.py": HELPERS.replace("return", "yield")},
        {"helpers.py": f"{HELPERS}\n\ndef change():\n    global mask\n    mask = None\n"},
        {"helpers.py": HELPERS + "#" * 700_000},
    ],
    ids=lambda files: str(files)[:60],
)
def test_what_cannot_be_told_is_unknown(tree, files: dict[str, str]) -> None:
    tree({"a.py": use("from helpers import mask"), **files})
    assert [finding for finding in found() if finding.code != "DVL900"] == []


def test_what_is_not_followed_may_put_a_module_where_it_is_told(tree) -> None:
    told = """\
import torch
from helpers import {helper}


def use(x: torch.Tensor, device):
    model = torch.nn.Linear(3, 3)
    {helper}(model, device)
    return model(x.to(device))
"""
    long = "def send(model, device):\n" + "    print(device)\n" * 90 + "    model.to(device)\n"
    tree({"helpers.py": long + "def look(model, device):\n    return device\n"})
    tree({"sent.py": told.format(helper="send"), "seen.py": told.format(helper="look")})
    assert [finding.filename for finding in found()] == ["seen.py"]


def test_without_a_project_nothing_is_known_of_imports(tree) -> None:
    tree({"helpers.py": HELPERS})
    assert check_source(use("from helpers import mask"), "a.py", MISMATCHES) == []


def test_the_standard_input_has_the_project_around_its_name(tree) -> None:
    tree({"pkg/__init__.py": "", "pkg/helpers.py": HELPERS})
    arguments = ["check", "--select", "DVL101", "--output-format", "json", "--stdin-filename", "pkg/a.py", "-"]
    result = CliRunner().invoke(main, arguments, input=use("from .helpers import mask"))
    (entry,) = json.loads(result.stdout)
    helpers = os.path.abspath("pkg/helpers.py")
    assert entry["filename"] == os.path.abspath("pkg/a.py")
    assert helpers in [place["filename"] for place in entry["related"]]


def test_a_suppression_concerns_the_file_of_the_finding(tree) -> None:
    silent = HELPERS.replace("torch.ones(size)", "torch.ones(size)  # devlint: ignore[DVL101]")
    tree({"helpers.py": silent, "a.py": use("from helpers import mask")})
    assert [finding.filename for finding in found()] == ["a.py"]
    tree({"a.py": use("from helpers import mask").replace("mask(3)", "mask(3)  # devlint: ignore[DVL101]")})
    assert found() == []


def test_a_file_that_has_changed_is_read_again(tree) -> None:
    tree({"helpers.py": HELPERS})
    target = Target("a.py", 0, Config())
    text = use("from helpers import mask")
    assert len(check_source(text, "a.py", MISMATCHES, view.view_of(target))) == 1
    tree({"helpers.py": HELPERS.replace("size)", "size, device='meta')")})
    assert check_source(text, "a.py", MISMATCHES, view.view_of(target)) == []


def test_what_a_file_depends_on(tree) -> None:
    tree({"pkg/__init__.py": "from .mid import mask\n", "pkg/mid.py": "from .low import mask\n", "pkg/low.py": HELPERS})
    tree({"pkg/other.py": HELPERS, "a.py": use("from pkg import mask\nfrom lacking import nothing\nimport pkg.other")})
    project, content = around("a.py"), Content(Path("a.py").read_bytes())
    check_source(content.data, "a.py", MISMATCHES, project)
    here = os.getcwd()
    files, names = project.dependencies(content)
    looked_at = {os.path.relpath(name, here) for name in files}
    assert {"pkg/__init__.py", "pkg/mid.py", "pkg/low.py"} <= looked_at
    assert files[os.path.abspath("a.py")].digest == digest_of(content.data)
    assert names[Name(here, "lacking")] is names[Name(here, "lacking.py")] is None
    assert names[Name(here, "pkg")] is True
    assert names[Name(os.path.join(here, "pkg"), "mid.py")] is False
    assert files[os.path.abspath("pkg/low.py")].digest == digest_of(HELPERS.encode())


def test_what_a_file_depends_on_through_its_base_classes(tree) -> None:
    tree({"root.py": "from torch import nn\n\n\nclass Root(nn.Module):\n    pass\n"})
    tree({"base.py": "from root import Root\n\n\nclass Base(Root):\n    pass\n"})
    text = "import torch\nfrom base import Base\n\n\nclass Net(Base):\n    def go(self, x):\n        return x.cuda()\n"
    for _ in range(2):
        # the second time, what the base is need not be found out again
        project = around("a.py")
        check_source(text, "a.py", MISMATCHES, project)
        files = project.dependencies(Content(text.encode())).files
        assert {os.path.basename(name) for name in files} == {"a.py", "base.py", "root.py"}


def test_fixes_stay_in_the_file_that_is_fixed(tree) -> None:
    tree({"helpers.py": HELPERS, "a.py": use("from helpers import mask")})
    CliRunner().invoke(main, ["check", "--select", "DVL101,DVL103,DVL203", "--fix", "--unsafe-fixes", "."])
    assert Path("helpers.py").read_text(encoding="utf-8") == HELPERS
    assert Path("a.py").read_text(encoding="utf-8").splitlines()[-1].endswith("mask(3).to(device)")
