"""Which files belong to tests, where what something costs, or where else it could run, hardly matters."""

from __future__ import annotations

import re

_OF_TESTS = ("_test.py", "_tests.py")
"""How the names of files of tests end."""
_FOLDERS = frozenset({"test", "tests"})
"""The folders in which tests, and what helps them, are kept."""


_TESTS = re.compile(r"^(?:import pytest\b|from torch\.autograd(?:\.gradcheck)? import .*\bgradcheck\b)", re.MULTILINE)
"""What a file imports that is one of tests, whatever its name."""


def is_test_file(filename: str, text: str = "") -> bool:
    """Whether a file is one of tests, by name or ``text``: then the ``test`` of every :class:`Scope` in it holds."""
    name = filename.replace("\\", "/").rpartition("/")[2]
    named = name == "conftest.py" or name.endswith(_OF_TESTS) or (name.endswith(".py") and name.startswith("test_"))
    return named or _TESTS.search(text) is not None


def is_of_tests(filename: str, text: str = "") -> bool:
    """Whether a file belongs to tests: it is one itself, or helps those in its folder, or in one around it.

    Of an absolute path only the last folder counts, since what is around it need not belong to the project.
    """
    path = filename.replace("\\", "/")
    folders = path.split("/")[:-1]
    around = folders if folders and folders[0] and path[1:2] != ":" else folders[-1:]
    return not _FOLDERS.isdisjoint(around) or is_test_file(filename, text)
