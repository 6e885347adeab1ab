"""The oldest torch that a project allows: what every kind of file says of it, and which file counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.config.torch_requirement import nearest, oldest

WHEEL = "https://wheels.example/cu111/torch-1.9.0%2Bcu111-cp38-cp38-linux_x86_64.whl"


BOUND = "[options]\ninstall_requires =\n    torch>=1.12\n"


@pytest.mark.parametrize(
    ("declaration", "release"),
    [
        ("torch>=2.1", (2, 1)),
        ("torch >= 2.1.2, < 3", (2, 1)),
        ("torch==1.13.1+cu117", (1, 13)),
        ("torch[opt]~=2.4.0", (2, 4)),
        ("torch (>=2.0)", (2, 0)),
        ("Torch===2.0.1", (2, 0)),
        ("torch==2.*", (2, 0)),
        ("torch>1.9 ; python_version < '3.12'", (1, 9)),
        ("torch>=2.2  # the first with it", (2, 2)),
        ("torch>=1.8,>=2.1", (2, 1)),
        ("torch!=2.0.0,>=1.12", (1, 12)),
        ("torch<2.1", (2, 0)),
        ("torch<2.1.2", (2, 1)),
        ("torch<=1.9.0", (1, 9)),
        ("torch<2", (1, 13)),
        (f"torch @ {WHEEL}", (1, 9)),
        (WHEEL, (1, 9)),
        ("torch ^2.3", (2, 3)),
        ("torch ~1.10", (1, 10)),
        ("torch 2.0.1", (2, 0)),
        ("torch ^1.13 || ^2.0", (1, 13)),
        ("pytorch=1.9.0=py3.8_cuda11.1", (1, 9)),
        ("pytorch::pytorch>=2.0", (2, 0)),
        ("conda-forge::pytorch 2.1.*", (2, 1)),
    ],
)
def test_the_oldest_torch_that_is_allowed(declaration: str, release: tuple[int, int]) -> None:
    assert oldest(declaration) == release


@pytest.mark.parametrize(
    "declaration",
    [
        "torch", "torch<3", "torch!=2.0.1", "torch *", "torchvision>=0.15", "torch-scatter==2.1", "pytorch-cuda=11.8",
        "# torch>=2.1", "-r torch.txt", "torch @ git+https://code.example/torch", "torch ^2.1 || *",
        "pytorch-lightning>=2.0", "",
    ],
)  # fmt: skip
def test_what_says_nothing_of_the_oldest_torch(declaration: str) -> None:
    assert oldest(declaration) is None


FILES = {
    "PEP 621": ("pyproject.toml", '[project]\ndependencies = ["numpy", "torch>=2.1"]', (2, 1)),
    "an extra": ("pyproject.toml", '[project.optional-dependencies]\ngpu = ["torch>=2.2"]', (2, 2)),
    "a user's before a developer's": (
        "pyproject.toml",
        '[project]\ndependencies = ["torch>=2.3"]\n[dependency-groups]\ntest = ["torch==2.1.0"]',
        (2, 3),
    ),
    "a group": ("pyproject.toml", '[dependency-groups]\ntest = ["torch>=2.4", {include-group = "x"}]', (2, 4)),
    "uv": ("pyproject.toml", '[tool.uv]\ndev-dependencies = ["torch==2.5.1"]', (2, 5)),
    "PDM": ("pyproject.toml", '[tool.pdm.dev-dependencies]\ntest = ["torch>=1.12"]', (1, 12)),
    "Poetry": ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.10"\ntorch = "^2.0.1"', (2, 0)),
    "Poetry, a table": ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = ">=1.11"}', (1, 11)),
    "Poetry, several": (
        "pyproject.toml",
        '[tool.poetry.group.gpu.dependencies]\ntorch = [{version = "2.3.0", platform = "linux"}, {version = "2.2.0"}]',
        (2, 2),
    ),
    "pixi": ("pyproject.toml", '[tool.pixi.dependencies]\npytorch = ">=2.4,<3"', (2, 4)),
    "setup.cfg": ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.10", (1, 10)),
    "an extra of setup.cfg": ("setup.cfg", "[options.extras_require]\nall =\n    torch>=1.7", (1, 7)),
    "setup.py": ("setup.py", "import setuptools\nsetuptools.setup(install_requires=['torch>=1.6'])", (1, 6)),
    "setup.py with a name": ("setup.py", "NEEDED = ['torch>=1.8']\nsetup(install_requires=NEEDED)", (1, 8)),
    "requirements": ("requirements.txt", "--extra-index-url https://wheels.example\nnumpy\ntorch==1.9.0\n", (1, 9)),
    "requirements of some": ("requirements-gpu.txt", "torch>=2.0\n", (2, 0)),
    "a folder of requirements": ("requirements/base.txt", "torch>=2.0\n", (2, 0)),
    "conda": ("environment.yml", "dependencies:\n  - python=3.8\n  - pytorch=1.9.0\n", (1, 9)),
    "pip in conda": ("environment.yaml", "dependencies:\n  - pip:\n    - torch==1.12.1\n", (1, 12)),
    "requirement": ("requirement.txt", "torch>1.10.0\n", (1, 10)),
    "conda's toolkit": ("environment.yml", "dependencies:\n  - pytorch\n  - cudatoolkit=11.3\n", (1, 12)),
    "wheels for a toolkit": ("requirements.txt", "-i https://download.pytorch.org/whl/cu113\ntorch\n", (1, 12)),
    "Pipfile": ("Pipfile", '[packages]\ntorch = "==2.0.1"\n[dev-packages]\npytest = "*"', (2, 0)),
}  # fmt: skip


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("name", "text", "release"), FILES.values(), ids=FILES)
def test_each_kind_of_file(tmp_path: Path, name: str, text: str, release: tuple[int, int]) -> None:
    path = write(tmp_path, name, text)
    found = nearest(str(tmp_path), {})
    assert found is not None
    assert (found.release, found.file) == (release, path)


def test_a_file_may_include_another(tmp_path: Path) -> None:
    write(tmp_path, "requirements.txt", "-r all/base.txt\n")
    write(tmp_path, "all/base.txt", "-r ../requirements.txt\ntorch>=1.13  # here\n")
    found = nearest(str(tmp_path), {})
    assert found is not None
    assert found.release == (1, 13)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "torch = ["),
        ("setup.py", "setup(install_requires=open('torch.txt').read()"),
        ("setup.cfg", "torch"),
        ("environment.yml", "torch: ["),
        ("environment.yml", "[torch]"),
        ("pyproject.toml", 'project = "torch"'),
        ("pyproject.toml", '[project]\ndependencies = "torch>=2.0"'),
        ("requirements.txt", "-r .\n-r nowhere.txt\ntorch\n"),
    ],
)
def test_a_file_that_says_nothing_clear(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, name, text)
    assert nearest(str(tmp_path), {}) is None


def test_setup_py_is_not_run(tmp_path: Path) -> None:
    write(tmp_path, "setup.py", f"open({str(tmp_path / 'run')!r}, 'w')\nsetup(install_requires=['torch>=2.0'])")
    assert nearest(str(tmp_path), {}) is not None
    assert not (tmp_path / "run").exists()


def test_the_package_comes_before_what_somebody_installs_for_it(tmp_path: Path) -> None:
    write(tmp_path, "requirements.txt", "torch==2.6.0")
    write(tmp_path, "pyproject.toml", '[project]\ndependencies = ["torch>=2.1"]')
    found = nearest(str(tmp_path), {})
    assert found is not None
    assert found.text == "torch>=2.1"


def test_the_nearest_one_counts(tmp_path: Path) -> None:
    (tmp_path / "examples/gan").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    write(tmp_path, "requirements.txt", "torch>=2.1")
    write(tmp_path, "examples/requirements.txt", "torch==1.4")
    releases = [nearest(str(tmp_path / name), {}) for name in ("examples/gan", "src")]
    assert [found.release for found in releases if found] == [(1, 4), (2, 1)]


def test_what_lies_around_a_repository_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "project/.git").mkdir(parents=True)
    (tmp_path / "project/src").mkdir()
    write(tmp_path, "requirements.txt", "torch==1.4")
    assert nearest(str(tmp_path / "project/src"), {}) is None
    assert nearest(str(tmp_path), {}) is not None


def test_what_people_are_told_to_install_counts_where_nothing_declares_it(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "README.md").write_text(
        "Needs PyTorch 1.9+ (conda: pytorch=2.1), as PyTorch 1.4 is too old; pytorch3d==0.7.\n"
    )
    found = nearest(str(tmp_path / "package"), {}, str(tmp_path))
    assert found is not None
    assert (found.release, Path(found.file).name) == ((1, 9), "README.md")
    # seen in wanda: who says how to install says more
    (tmp_path / "INSTALL.md").write_text("pip install torch==1.8.0+cu111 torchvision==0.9.0\n")
    found = nearest(str(tmp_path / "package"), {}, str(tmp_path))
    assert found is not None
    assert (found.release, Path(found.file).name) == ((1, 8), "INSTALL.md")
    (tmp_path / "requirements.txt").write_text("torch>=2.4\n")
    found = nearest(str(tmp_path / "package"), {}, str(tmp_path))
    assert found is not None
    assert found.release == (2, 4)


def test_what_is_recommended_and_what_is_installed_are_the_ends_of_what_is_meant(tmp_path: Path) -> None:
    """Seen in VMamba."""
    write(tmp_path, "README.md", "    pip install torch==2.2 torchvision\n\nWe recommend using pytorch>=2.0.\n")
    found = nearest(str(tmp_path), {})
    assert found is not None
    assert (found.release, found.latest) == ((2, 0), (2, 2))


@pytest.mark.parametrize(
    ("name", "text", "release"),
    [
        ("README.md", "This codebase has been developed with python 3.7, PyTorch version 1.7.1 and CUDA 10.1.", (1, 7)),
        ("README.md", "- [PyTorch](https://github.com/pytorch/pytorch) >= 1.9, \\<= 1.10.2", (1, 9)),
        ("README.rst", "Tested with ``torch`` 2.1 under Ubuntu 20.04, PyTorch 1.8 and CUDA 10.1 on a V100.", (1, 8)),
        ("README.md", "- `Python 3.7.10` / `Pytorch 1.9.0` / `torchvision 0.10.0` / `CUDA 11.1`", (1, 9)),
        ("docs/install.md", "pip install torch==1.9.1+cu111 torchvision==0.10.1+cu111", (1, 9)),
        ("docs/en/install.md", "**Step 1.** Install PyTorch=2.0.1, Python=3.10.12", (2, 0)),
        ("documents/INSTALL.md", "pip install torch==1.12.1+cu113 torchvision==0.13.1+cu113", (1, 12)),
        ("documents/requirements.txt", "torch==1.9.1", (1, 9)),
        ("docs/source/installation.rst", "conda install pytorch=2.0.1 torchvision=0.15.2 -c pytorch", (2, 0)),
        ("docs/en/changes.md", "Now with PyTorch==2.0.1", None),
        ("docs/requirements.txt", "torch==1.9.1", None),
        ("README.md", "Our PyTorch 1.4 numbers of last year are in the appendix.", None),
        ("README.md", "Needs **PyTorch** 1.9+; with PyTorch 1.4 it is slow.", (1, 9)),
        ("README.md", "PyTorch 3D 0.7, torchvision 0.8, Python 3.7, 1.5 GB", None),
        ("Dockerfile", "FROM pytorch/pytorch:1.9.1-cuda11.1-cudnn8-devel", (1, 9)),
        ("docker/Dockerfile", "RUN pip install torch==1.12.1+cu116", (1, 12)),
        # seen in DeepLearningExamples and radtts: NVIDIA's containers are of a month
        ("Dockerfile", "ARG FROM_IMAGE_NAME=nvcr.io/nvidia/pytorch:21.03-py3", (1, 9)),
        ("Dockerfile", "FROM nvcr.io/nvidia/pytorch:22.12-py3", (1, 13)),
        ("Dockerfile", "FROM nvcr.io/nvidia/pytorch:23.10-py3", (2, 1)),
        ("Dockerfile", "FROM nvcr.io/nvidia/tritonserver:21.03-py3", None),
        ("env/SE3nv.yml", "dependencies:\n  - pytorch=1.9\n  - cudatoolkit=11.1\n", (1, 9)),
        ("conda_env.yaml", "dependencies:\n  - pip:\n    - torch==2.0.1\n", (2, 0)),
        ("LSP-generic.yml", "name: LSP\nchannels:\n  - pytorch\ndependencies:\n  - pytorch=1.2.0\n", (1, 2)),
        ("config.yml", "model:\n  dependencies:\n    - torch==1.2.0\n", None),
        ("install.sh", "pip install torch==1.9.1+cu111\n", (1, 9)),
        ("sh/install.sh", "pip install torch==1.11+cu113 torchvision==0.12\n", (1, 11)),
        ("scripts/setup_env.sh", "conda install pytorch==1.8.0 -c pytorch\n", (1, 8)),
        ("scripts/train.sh", "pip install torch==1.8.0\n", None),
        ("install.log", "Collecting torch==1.9.1\n", None),
        ("README.log", "torch==1.9.1\n", None),
        ("INSTALL", "pip install torch==1.9.1\n", (1, 9)),
    ],
)
def test_where_a_project_speaks_of_its_torch(
    tmp_path: Path, name: str, text: str, release: tuple[int, int] | None
) -> None:
    """Seen in RFdiffusion, SOLIDER, bevfusion, rq-vae-transformer, DialoGPT and Graphormer."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    found = nearest(str(tmp_path), {})
    assert (found.release if found else None) == release


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("The code was tested with PyTorch 1.7.", (1, 7)),
        ("It has been developed under Ubuntu 18.04 with PyTorch 1.7.1, on a V100.", (1, 7)),
        ("This is built on PyTorch 1.12", (1, 12)),
        ("It requires\nPyTorch 1.12 and more.", (1, 12)),
        ("PyTorch==1.4", (1, 4)),
        ("torch 1.8 or higher", (1, 8)),
        ("[PyTorch (>= 1.7)](https://pytorch.org)", (1, 7)),
        ("* PyTorch ( == 0.4.1, for older ones see the branch)", (0, 4)),
        ("- [PyTorch](http://pytorch.org) install = 1.4.0", (1, 4)),
        ("First install PyTorch (we use 1.7.0) and apex", (1, 7)),
        ("First, install PyTorch meeting your environment (at least 1.7):", (1, 7)),
        ("Install [Pytorch 2.0](https://pytorch.org/get-started/locally/)", (2, 0)),
        ("## Requirements\n\n* numpy\n* pytorch1.2.0\n", (1, 2)),
        ("* PyTorch 1.6 - 1.10", (1, 6)),
        ("- PyTorch `1.8.1`\n- torchvision `0.9.1`", (1, 8)),
        ("PyTorch 1.7+ is now required", (1, 7)),
        ("It has not been tested with PyTorch 1.7.", None),
        ("* PyTorch 1.13 is slow here.", None),
        ("It works; PyTorch 1.4 does not.", None),
        ("In earlier PyTorch versions < 0.4 you have to use `.data`.", None),
    ],
)
def test_how_prose_asks_for_it(tmp_path: Path, text: str, release: tuple[int, int] | None) -> None:
    write(tmp_path, "README.md", f"# A project\n\n{text}\n")
    found = nearest(str(tmp_path), {})
    assert (found and found.release) == release


def test_documents_are_read_up_to_the_root_of_the_project(tmp_path: Path) -> None:
    inside, project = tmp_path / "project/net", str(tmp_path / "project")
    inside.mkdir(parents=True)
    write(tmp_path, "INSTALL.md", "pip install torch==1.4.0\n")
    assert nearest(str(inside), {}, str(tmp_path)) is not None
    # the one that is checked begins there, a package, or a repository
    assert nearest(str(inside), {}, project) is None
    assert nearest(str(inside), {}) is None
    write(tmp_path, "project/README.md", "PyTorch 1.9+\n")
    assert nearest(str(inside), {}) is None
    for name in ("setup.py", ".git"):
        write(tmp_path, f"project/{name}", "")
        found = nearest(str(inside), {})
        assert found is not None
        assert found.release == (1, 9)


def test_what_a_subproject_says_counts_for_it(tmp_path: Path) -> None:
    """Seen in InternImage: a README of a folder pins another torch than the root asks for."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "driving/plugin").mkdir(parents=True)
    write(tmp_path, "requirements.txt", "torch>=2.4\n")
    write(
        tmp_path, "driving/README.md", "```\ntorch==1.12 # recommend\nmmcv-full>=1.5.0\n```\nsh make.sh # torch>=1.13\n"
    )
    found = nearest(str(tmp_path / "driving/plugin"), {})
    assert found is not None
    assert (found.release, found.latest) == ((1, 12), (1, 12))
    found = nearest(str(tmp_path), {})
    assert found is not None
    assert found.release == (2, 4)


def test_a_toolkit_counts_where_nothing_tells_of_torch_itself(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "net").mkdir()
    write(tmp_path, "net/environment.yml", "dependencies:\n  - pytorch\n  - cudatoolkit=10.1\n")
    found = nearest(str(tmp_path / "net"), {})
    assert found is not None
    assert (found.release, found.latest) == ((1, 8), None)
    write(tmp_path, "README.md", "Tested with PyTorch 1.13.\n")
    found = nearest(str(tmp_path / "net"), {})
    assert found is not None
    assert (found.release, Path(found.file).name) == ((1, 13), "README.md")


@pytest.mark.parametrize(
    ("requirement", "latest"),
    [
        ("torch==2.0.0", (2, 0)),
        ("torch<=1.13", (1, 13)),
        ("torch<2", (1, 13)),
        (WHEEL, (1, 9)),
        ("torch>=2.0,<2.3", (2, 2)),
        ("torch>=2.0,<2.3.1", (2, 3)),
        ("torch>=2.0,!=2.1,<=2.4", (2, 4)),
        # seen in VAR
        ("torch~=2.1.0", (2, 1)),
        ("torch~=2.0", None),
        ("torch==2.*", None),
        ("torch>=1.12", None),
    ],
)
def test_what_allows_no_later_torch(tmp_path: Path, requirement: str, latest: tuple[int, int] | None) -> None:
    write(tmp_path, "requirements.txt", requirement)
    found = nearest(str(tmp_path), {})
    assert found is not None
    assert found.latest == latest


@pytest.mark.parametrize(
    ("line", "release"),
    [
        ("conda install pytorch torchvision cudatoolkit=11.3 -c pytorch", (1, 12)),
        ("git clone -b v2.1.0 https://code.example/pytorch/pytorch.git", (2, 1)),
        ("conda install pytorch cudatoolkit=9.2 -c pytorch", (1, 7)),
        ("conda install pytorch pytorch-cuda=11.7 -c pytorch -c nvidia", (2, 0)),
        ("conda install pytorch pytorch-cuda=12.1 -c pytorch -c nvidia", None),
        ("pip install torch --extra-index-url https://download.pytorch.org/whl/cu113", (1, 12)),
        ("pip install torch --index-url https://download.pytorch.org/whl/cu121", None),
        ("conda install cudatoolkit=11.3", None),
        ("git clone -b v2.1.0 https://code.example/pytorch/vision.git", None),
    ],
)
def test_how_people_are_told_to_install_it(tmp_path: Path, line: str, release: tuple[int, int] | None) -> None:
    """Seen in ProteinMPNN and DeepSpeedExamples."""
    write(tmp_path, "README.md", f"First `{line}`.\n")
    found = nearest(str(tmp_path), {})
    assert (found and found.release) == release


@pytest.mark.parametrize(
    ("files", "release", "latest"),
    [
        # seen in AIRS: the environment as conda exports it, and a page of its own
        ({"environment.yml": "dependencies:\n  - pytorch/linux-64::pytorch==2.1.0=py3.8_cuda11.8_0\n"}, (2, 1), (2, 1)),
        ({"ENVIRONMENT.md": "mamba install pytorch=2.3.0 pytorch-cuda=11.8 -c pytorch\n"}, (2, 3), (2, 3)),
        # seen in SparseDrive
        ({"docs/quick_start.md": "pip3 install torch==1.13.0+cu116\n"}, (1, 13), (1, 13)),
        # seen in wesep: any may do, this one is in use
        ({"setup.cfg": BOUND, "README.md": "conda install pytorch=1.12.1 -c pytorch\n"}, (1, 12), (1, 12)),
        ({"setup.cfg": BOUND, "README.md": "Needs PyTorch 1.12.\n"}, (1, 12), None),
        # what is older than what is asked for is a word of long ago
        ({"setup.cfg": BOUND, "README.md": "conda install pytorch=1.8 -c pytorch\n"}, (1, 12), None),
    ],
)
def test_the_youngest_that_people_are_told_to_install(
    tmp_path: Path, files: dict[str, str], release: tuple[int, int], latest: tuple[int, int] | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = nearest(str(tmp_path), {})
    assert found is not None
    assert (found.release, found.latest) == (release, latest)
