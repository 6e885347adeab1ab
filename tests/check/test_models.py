"""Rows that a project and installed packages have written: who is believed, and what is wrong in one clear line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from devlint.check.project import models, view
from tests.check.cache.conftest import Run, checked, run  # noqa: F401  # fixtures

CONFIG = '[tool.devlint]\nmodels = ["devlint_models.toml"]\nselect = ["DVL1"]\n'
TO_GPU = '[my_project.utils.to_gpu]\nresult = "argument:batch"\nplace = "cuda"\n'
UTILS = "import framework\n\n\ndef to_gpu(mode, batch):\n    return framework.apply(mode, batch)\n"
USE = "import torch\n{imports}\n\n\ndef step():\n    return {call}('eval', torch.ones(4)) + torch.ones(4)\n"


@pytest.fixture(autouse=True)
def anew(tree) -> None:
    """Nothing is known of earlier tests."""
    view.begin()
    models.look_again()


def use(imports: str, call: str = "to_gpu") -> str:
    return USE.format(imports=imports, call=call)


# --- Code of one's own --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from my_project.utils import to_gpu", "to_gpu"),
        ("from my_project.utils import to_gpu as send", "send"),
        ("from .utils import to_gpu", "to_gpu"),
        ("from . import utils", "utils.to_gpu"),
        ("import my_project.utils", "my_project.utils.to_gpu"),
        ("import my_project.utils as u", "u.to_gpu"),
        ("from my_project import to_gpu", "to_gpu"),
        ("from my_project import *", "to_gpu"),
        ("from .utils import *", "to_gpu"),
    ],
)
def test_a_function_of_the_project_is_found_whatever_it_is_called(tree, run: Run, imports: str, call: str) -> None:  # noqa: F811
    """Its parameters are those of its definition."""
    tree({"pyproject.toml": CONFIG, "devlint_models.toml": TO_GPU, "my_project/utils.py": UTILS})
    tree({"my_project/__init__.py": "from .utils import to_gpu\n", "my_project/train.py": use(imports, call)})
    result = run("my_project/train.py", "--no-cache", code=1)
    assert "`torch.ones(4)` is on the CPU but" in result.output
    assert "`to_gpu` puts it on `cuda` here" in result.output


def test_a_function_is_what_its_row_says_in_its_own_file_too(tree, run: Run) -> None:  # noqa: F811
    code = use(UTILS)
    tree({"pyproject.toml": CONFIG, "devlint_models.toml": TO_GPU, "my_project/utils.py": code})
    tree({"my_project/__init__.py": ""})
    assert "[DVL101]" in run("my_project/utils.py", "--no-cache", code=1).output


def test_the_row_is_believed_where_the_code_says_something_else(tree, run: Run) -> None:  # noqa: F811
    code = "import torch\n\n\ndef to_gpu(mode, batch):\n    return batch.to('cuda')\n"
    files = {
        "my_project/__init__.py": "",
        "my_project/utils.py": code,
        "my_project/train.py": use("from .utils import *"),
    }
    tree({"pyproject.toml": CONFIG, "devlint_models.toml": "", **files})
    run("my_project/train.py", "--no-cache", code=1)
    tree({"devlint_models.toml": TO_GPU.replace("cuda", "cpu")})
    run("my_project/train.py", "--no-cache", code=0)


def test_a_class_and_a_method_of_the_project(tree, run: Run) -> None:  # noqa: F811
    rows = (
        '["my_project.wrap.Wrapper"]\nresult = "argument:inner"\n'
        '["my_project.wrap.Lab.put"]\nresult = "argument:batch"\nplace = "cuda"\n'
    )
    wrap = (
        "from somewhere import Base\n\n\nclass Wrapper(Base):\n    def __init__(self, name, inner):\n"
        "        self.inner = inner\n\n\nclass Lab:\n    def put(self, batch):\n        return self.where(batch)\n"
    )
    train = (
        "import torch\nfrom torch import nn\nfrom .wrap import Lab, Wrapper\n\n\ndef step():\n"
        "    model = Wrapper('x', nn.Linear(4, 4))\n"
        "    return model(torch.ones(4).cuda())\n\n\n"
        "def other():\n    lab = Lab()\n    return lab.put(torch.ones(4)) + torch.ones(4)\n"
    )
    tree({"pyproject.toml": CONFIG, "devlint_models.toml": rows, "my_project/__init__.py": ""})
    tree({"my_project/wrap.py": wrap, "my_project/train.py": train})
    output = run("my_project/train.py", "--no-cache", "--output-format", "concise", code=1).output
    assert [line.split(":")[1] for line in output.splitlines() if "DVL101" in line] == ["8", "13"]


def test_the_helper_is_named_where_it_moves_a_batch_of_a_loader(tree, run: Run) -> None:  # noqa: F811
    train = (
        "import torch\nfrom installed import to_gpu\nfrom torch.utils.data import DataLoader, TensorDataset\n\n\n"
        "def step():\n    for batch in DataLoader(TensorDataset(torch.ones(4))):\n        (x,) = to_gpu(batch)\n"
        "        return x * torch.ones(4)\n"
    )
    rows = '[installed.to_gpu]\nresult = "argument:batch"\nplace = "cuda"\nparameters = ["batch"]\n'
    tree({"pyproject.toml": CONFIG, "devlint_models.toml": rows, "train.py": train})
    assert "`to_gpu` puts it on `cuda` here" in run("train.py", "--no-cache", code=1).output


def test_a_wrapper_that_moves_its_inputs(tree, run: Run) -> None:  # noqa: F811
    train = (
        "import torch\nfrom torch import nn\nfrom installed import Wrapper\n\n\ndef step():\n"
        "    return Wrapper(nn.Linear(4, 4))(torch.ones(4))\n"
    )
    rows = '[installed.Wrapper]\nis = "module"\nplace = "cuda"\n'
    tree({"pyproject.toml": CONFIG, "devlint_models.toml": rows, "train.py": train})
    assert "[DVL101]" in run("train.py", "--no-cache", code=1).output
    tree({"devlint_models.toml": f'{rows}accepts-cpu = ["*"]\n'})
    run("train.py", "--no-cache", code=0)


# --- Who says it --------------------------------------------------------------------------------------------------


def package(folder: Path, name: str, rows: str, value: str = "") -> None:
    """A package that is installed in a folder, whose code must not be imported."""
    (folder / name / "data").mkdir(parents=True)
    (folder / name / "__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    (folder / name / "data" / "models.toml").write_text(rows, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    points = f"[devlint.models]\n{name} = {value or f'{name}.data:models.toml'}\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")


CREATE = """\
import timm
import torch


def f():
    model = timm.create_model("resnet18")
    model(torch.ones(4).cuda())
"""


def test_a_package_comes_before_devlint_and_the_project_before_both(
    tree,
    run: Run,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree({"pyproject.toml": '[tool.devlint]\nselect = ["DVL101"]\n', "f.py": CREATE})
    run("f.py", "--no-cache", code=1)  # devlint knows that it is on the CPU
    installed = tmp_path_factory.mktemp("site")
    package(installed, "speaks_of_timm", '["timm.create_model"]\nresult = "module"\nplace = "cuda"\n')
    monkeypatch.syspath_prepend(str(installed))
    run("f.py", "--no-cache", code=0)
    tree({"pyproject.toml": CONFIG, "devlint_models.toml": '["timm.create_model"]\nresult = "module"\nplace = "cpu"\n'})
    run("f.py", "--no-cache", code=1)
    assert "speaks_of_timm" not in sys.modules


def test_a_package_that_names_no_file(tree, run: Run, tmp_path_factory, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    installed = tmp_path_factory.mktemp("site")
    package(installed, "empty_handed", "", "empty_handed:nothing.toml")
    monkeypatch.syspath_prepend(str(installed))
    tree({"f.py": CREATE})
    output = run("f.py", code=2).output
    assert (
        output
        == "error: the entry point 'empty_handed' of devlint.models: there is no file 'empty_handed:nothing.toml'\n"
    )


# --- Mistakes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ('["a.b"]\nreslt = "tensor"\n', "[\"a.b\"]: unknown word 'reslt' (did you mean 'result'?)"),
        ('["a.b"]\nis = "modul"\n', "[\"a.b\"]: is: expected 'module', 'loader', "),
        ('["a.B.forward"]\nresult = "tensor"\n', "[\"a.B.forward\"]: what a call of a class or a module does stands"),
        ("[a.b\n", "not valid TOML: "),
        ("waits = true\n", "'waits' stands outside of any row: expected a table such as [\"package.function\"]"),
        (None, "there is no such file, or it cannot be read"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_in_one_line(tree, run: Run, rows: str | None, said: str) -> None:  # noqa: F811
    tree({"pyproject.toml": CONFIG, "f.py": "import torch\n"})
    if rows is not None:
        tree({"devlint_models.toml": rows})
    output = run(".", code=2).output
    assert output.startswith(f"error: {os.path.abspath('devlint_models.toml')}: {said}")
    assert output.count("\n") == 1


@pytest.mark.parametrize("value", ['"devlint_models.toml"', "[1]", '[""]'])
def test_the_configuration_names_a_list_of_files(tree, run: Run, value: str) -> None:  # noqa: F811
    tree({"pyproject.toml": f"[tool.devlint]\nmodels = {value}\n", "f.py": ""})
    assert "pyproject.toml: models: expected" in run(".", code=2).output


# --- What is remembered, and where else it holds ------------------------------------------------------------------


@pytest.fixture
def knowing(tree) -> None:
    """A project with a file that one row matters to."""
    tree({"pyproject.toml": CONFIG, "devlint_models.toml": TO_GPU, "my_project/utils.py": UTILS})
    tree({"my_project/__init__.py": "", "my_project/train.py": use("from .utils import to_gpu")})


@pytest.mark.usefixtures("knowing")
def test_a_file_of_rows_belongs_to_what_the_cache_goes_by(tree, run: Run, checked: list[str]) -> None:  # noqa: F811
    first = run(".", code=1).output
    checked.clear()
    assert run(".", code=1).output == first
    assert checked == []
    tree({"devlint_models.toml": TO_GPU.replace("cuda", "cpu")})
    run(".", code=0)
    assert len(checked) == 3
    checked.clear()
    tree({"devlint_models.toml": TO_GPU})
    assert run(".", code=1).output == first
    assert checked == []


@pytest.mark.usefixtures("knowing")
def test_what_is_installed_belongs_to_what_the_cache_goes_by(
    run: Run,  # noqa: F811
    checked: list[str],  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(".", code=1)
    installed = tmp_path_factory.mktemp("site")
    package(installed, "newcomer", '["math.sqrt"]\nresult = "number"\n')
    monkeypatch.syspath_prepend(str(installed))
    checked.clear()
    run(".", code=1)
    assert len(checked) == 3


@pytest.mark.usefixtures("knowing")
def test_a_run_that_knows_its_results_reads_no_rows(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    run(".", code=1)
    monkeypatch.setattr(models, "read", lambda names: pytest.fail("read"))
    models._catalog.cache_clear()
    run(".", code=1)


@pytest.mark.usefixtures("knowing")
def test_every_process_knows_the_rows(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr("devlint.check.engine.BYTES_WORTH_A_PROCESS", 1)
    assert run(".", "--no-cache", "-j", "2", code=1).output == run(".", "--no-cache", "-j", "1", code=1).output


@pytest.mark.usefixtures("knowing")
def test_the_standard_input_knows_the_rows(tree, run: Run) -> None:  # noqa: F811
    tree({"devlint_models.toml": TO_GPU.replace("batch", "1")})
    text = Path("my_project/train.py").read_text(encoding="utf-8").replace("from .utils", "from my_project.utils")
    assert "[DVL101]" in run("-", stdin=text, code=1).output


def test_folders_may_have_rows_of_their_own(tree, run: Run) -> None:  # noqa: F811
    """Both projects import the same helper, which each of them describes."""
    use_of = use("from helpers import to_gpu")
    tree({"a/helpers.py": UTILS, "b/helpers.py": UTILS, "a/use.py": use_of, "b/use.py": use_of})
    for name, place in (("a", "cuda"), ("b", "cpu")):
        rows = TO_GPU.replace("my_project.utils", "helpers").replace("cuda", place)
        tree({f"{name}/pyproject.toml": CONFIG, f"{name}/devlint_models.toml": rows})
    output = run("a", "b", "--no-cache", "--output-format", "concise", code=1).output
    assert [line.split(":")[0] for line in output.splitlines() if "DVL101" in line] == [os.path.join("a", "use.py")]
