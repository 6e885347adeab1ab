"""Kinds of files by the conventions of the ecosystem: tests, notebooks, examples, data, other people's code.

What something costs, or where else it could run, hardly matters in some of them.
"""

from __future__ import annotations

import re
from fnmatch import translate

_OF_TESTS = ("_test.py", "_tests.py")
"""How the names of files of tests end."""
_FOLDERS = frozenset({"test", "tests"})
"""The folders in which tests, and what helps them, are kept."""


PATTERNS = {
    "tests": ("test/", "tests/", "test_*.py", "*_test.py", "*_tests.py", "conftest.py"),
    "notebooks": ("*.ipynb",),
    "examples": ("example/", "examples/", "demo/", "demos/", "tutorial/", "tutorials/"),
    "vendored": (
        "vendor/", "vendors/", "vendored/", "*_vendor/", "*_vendored/", "third_party/", "third-party/", "thirdparty/",
        "3rdparty/", "3rd_party/", "extern/", "external/", "externals/", "dependencies/", "submodules/",
        "lightning_logs/", "wandb/", "mlruns/",
        "backup/", "backups/", "bak/", "archive/", "archived/", "obsolete/", "outdated/", "deprecated/",
        "legacy/", "old/", "unused/", "attic/", "scratch/", "draft/", "drafts/",
    ),
}  # fmt: skip
"""What each kind of files is called, as patterns of git's ignore files; what a run logs, or is put aside, is a copy."""
_EXAMPLES = frozenset(pattern.rstrip("/") for pattern in PATTERNS["examples"])
_VENDORED = re.compile("|".join(translate(pattern.rstrip("/")) for pattern in PATTERNS["vendored"]))


_TESTS = re.compile(r"^(?:import pytest\b|from torch\.autograd(?:\.gradcheck)? import .*\bgradcheck\b)", re.MULTILINE)
"""What a file imports that is one of tests, whatever its name."""


_TRANSFORMS = re.compile(r"(?:[a-z]+_)*(?:transforms?|augment(?:s|ations?)?|datasets?|preprocess(?:ing|ors?)?)")
"""What files and folders are called that make samples, which is the host's work."""


_EXPORTS = re.compile(
    r"(?:.*_)?(?:onnx|tensorrt|trt|coreml|tflite|openvino|export(?:er|s)?|conver(?:t|ter|sion))(?:_.*)?"
)
"""What files and folders are called that write models in other formats."""


def is_test_file(filename: str, text: str = "") -> bool:
    """Whether a file is one of tests, by name or ``text``: then the ``test`` of every :class:`Scope` in it holds."""
    name = filename.replace("\\", "/").rpartition("/")[2]
    named = name == "conftest.py" or name.endswith(_OF_TESTS) or (name.endswith(".py") and name.startswith("test_"))
    return named or _TESTS.search(text) is not None


def is_of_tests(filename: str, text: str = "") -> bool:
    """Whether a file belongs to tests: it is one itself, or helps those in its folder, or in one around it."""
    return not _FOLDERS.isdisjoint(_folders(filename)) or is_test_file(filename, text)


def is_vendored(filename: str) -> bool:
    """Whether a file is a copy that a project keeps, of other people's code or of what its own once was."""
    return any(_VENDORED.match(folder.lower()) for folder in _folders(filename))


def is_example(filename: str) -> bool:
    """Whether a file shows how something is used."""
    return not _EXAMPLES.isdisjoint(_folders(filename))


def makes_samples(filename: str) -> bool:
    """Whether a file transforms samples before anything moves them, or makes them."""
    name = filename.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    return any(_TRANSFORMS.fullmatch(part.lower()) for part in (*_folders(filename), name))


def is_for_export(filename: str) -> bool:
    """Whether a file is there for writing a model in another format, which is done on the host as a rule."""
    name = filename.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    return any(_EXPORTS.fullmatch(part.lower()) for part in (*_folders(filename), name))


def is_beside(filename: str) -> bool:
    """Whether a file is not what a project is there for: a test, an example, a copy, samples, an export."""
    kinds = (is_of_tests, is_example, is_vendored, makes_samples, is_for_export, is_notebook)
    return any(kind(filename) for kind in kinds)


def is_notebook(filename: str) -> bool:
    """Whether a file is a Jupyter notebook."""
    return filename.endswith(".ipynb")


def _folders(filename: str) -> list[str]:
    """The folders in which a file is; of an absolute path only the last, since the others need not be the project's."""
    path = filename.replace("\\", "/")
    folders = path.split("/")[:-1]
    return folders if folders and folders[0] and path[1:2] != ":" else folders[-1:]
