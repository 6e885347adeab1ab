"""The suites: what each needs, which of its tests are run and how it is told the device."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES_A_DEVICE = re.compile(r"cuda|device", re.IGNORECASE)
"""Of the folders of a suite, the files are run whose text says this."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite, as its project tells to run it."""

    name: str
    tests: tuple[str, ...]
    """Its folders and files, chosen before they were run: those that compute with tensors, without what is left out."""
    needs: str
    """The packages beside torch, numpy and pytest."""
    left_out: str
    """What is not run, and why."""
    folders: tuple[str, ...] = ()
    """What the source package or the clone is called, if not as the suite."""
    without: tuple[str, ...] = ()
    """Folders and files among them that are not run."""
    options: tuple[str, ...] = ()
    device_option: str = ""
    """The suite's own option for the device."""
    environment: dict[str, str] = field(default_factory=dict)
    """Its variables; ``{device}`` stands for the device."""
    every: int = 1
    """One of so many of the files, in the order of their names, is run, so that a run takes minutes."""
    all_files: bool = False
    """Whether files are run that do not mention a device, too."""
    own: bool = False
    """The tests are ours, over tables of torch."""
    path: str = "."
    """The folder of the package, which is imported from there."""

    def source(self, sources: Path) -> Path | None:
        """Its folder, or ``None`` where there is none; the last one in order of names, if there are several."""
        if self.own:
            return HERE / "databases"
        names = "|".join(re.escape(name) for name in (self.name, *self.folders))
        pattern = re.compile(rf"(?:{names})(?:-v?\d[\w.]*)?")
        found = sorted(entry for entry in sources.iterdir() if entry.is_dir() and pattern.fullmatch(entry.name))
        return found[-1] if found else None

    def files(self, source: Path) -> list[str]:
        """The files that are run, relative to the source."""
        found: list[Path] = []
        for name in self.tests:
            place = source / name
            found += [place] if place.is_file() else sorted(place.rglob("test_*.py"))
        left_out = [source / name for name in self.without]
        found = [path for path in found if not any(path.is_relative_to(place) for place in left_out)]
        if not self.all_files:
            found = [path for path in found if NAMES_A_DEVICE.search(path.read_text(encoding="utf-8"))]
        return [path.relative_to(source).as_posix() for path in found[:: self.every]]


SUITES = (
    Suite(
        "kornia",
        tests=tuple(f"tests/{name}" for name in "filters color enhance geometry losses metrics morphology".split()),
        needs="kornia_rs",
        left_out="losses/test_mutual_information.py: minutes; tests with 'dynamo' in their names need a compiler",
        without=("tests/losses/test_mutual_information.py",),
        options=("-k", "not dynamo"),
        device_option="--device",
    ),
    Suite(
        "torch_geometric",
        tests=("test",),
        folders=("pytorch_geometric", "pyg"),
        needs="aiohttp fsspec jinja2 psutil pyparsing requests scikit-learn scipy tqdm xxhash",
        left_out="datasets, distributed, llm, graphgym: downloads, processes, other packages; compile: a compiler",
        without=tuple(f"test/{name}" for name in "datasets distributed llm graphgym".split()),
        options=("-m", "not rag and not dataset", "-k", "not compile"),
    ),
    Suite(
        "timm",
        tests=tuple(f"tests/test_{name}.py" for name in "layers layers_drop layers_pool utils".split()),
        folders=("pytorch-image-models",),
        needs="torchvision huggingface_hub safetensors pyyaml",
        left_out="optimizers and whole models: many minutes; torch.compile: a compiler",
        options=("-k", "not compile and not torchscript"),
        environment={"TORCH_DEVICE": "{device}"},
    ),
    Suite(
        "gpytorch",
        tests=("test",),
        needs="linear_operator scikit-learn scipy mpmath",
        left_out="files, for time; it has no switch, its tests for CUDA run where there is one",
        every=3,
    ),
    Suite(
        "torchmetrics",
        tests=tuple(
            f"tests/unittests/{name}"
            for name in "bases wrappers pairwise regression classification image retrieval nominal clustering".split()
        ),
        needs="lightning-utilities scikit-learn scipy cloudpickle cachier pandas",
        left_out="tests with ddp in several processes, which compute on the CPU; metrics that other packages compute",
        options=("-k", "not ddp", "-p", "no:doctest"),
        path="src",
        every=6,
    ),
    Suite(
        "accelerate",
        tests=("tests",),
        needs="accelerate huggingface_hub safetensors psutil pyyaml parameterized",
        left_out="tests that download; deepspeed, fsdp, tp, launchers, test_cli: processes, other packages",
        without=tuple(f"tests/{one}" for one in "deepspeed fsdp tp test_cli.py test_tpu.py test_sagemaker.py".split()),
        environment={"HF_HUB_OFFLINE": "1"},
        path="src",
    ),
    Suite(
        "ignite",
        tests=tuple(f"tests/ignite/{name}" for name in "metrics handlers base engine".split()),
        folders=("pytorch-ignite",),
        needs="scikit-learn scipy pandas",
        left_out="distributed tests, test_deterministic.py: several processes; metrics that download models",
        without=("tests/ignite/engine/test_deterministic.py",),
        options=("-k", "not distributed and not distrib and not multinode and not tpu"),
        every=2,
    ),
    Suite(
        "skorch",
        tests=("skorch/tests",),
        needs="scikit-learn scipy tabulate tqdm flaky",
        left_out="skorch/tests/llm and test_hf.py: other packages and downloads",
        without=("skorch/tests/llm", "skorch/tests/test_hf.py"),
        environment={"HF_HUB_OFFLINE": "1"},
    ),
    Suite(
        "einops",
        tests=("einops/tests",),
        needs="parameterized",
        left_out="the backends but torch; torch.compile: a compiler",
        options=("-k", "not compile"),
        environment={"EINOPS_TEST_BACKENDS": "torch"},
        all_files=True,
    ),
    *(
        Suite(
            name,
            tests=(file,),
            needs="expecttest",
            left_out=left_out,
            options=("-c", "/dev/null", "--confcutdir=."),
            environment={"SUITE_DEVICE": "{device}", "SUITE_EVERY": str(every)},
            all_files=True,
            own=True,
        )
        for name, file, every, left_out in (
            ("torch OpInfo", "operators.py", 1, "all but the first samples of each operator"),
            ("torch OpInfo dtypes", "dtypes.py", 4, "three of four operators; all but the first sample of each pair"),
            (
                "torch ModuleInfo, OptimizerInfo",
                "modules.py",
                1,
                "differentiable=True (parameters that are no leaves)",
            ),
        )
    ),
)


def chosen(names: list[str]) -> tuple[Suite, ...]:
    """The suites of these names, or all; raises ``KeyError`` with a name that is none."""
    known = {suite.name: suite for suite in SUITES}
    return tuple(known[name] for name in names) if names else SUITES
