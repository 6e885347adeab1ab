"""The import that a fix adds: where it goes, and where none is needed or possible."""

from __future__ import annotations

import ast

import pytest

from devlint.finding import Edit
from devlint.rules.code.imports import importing
from devlint.source.tree import Source

PLACES = {
    "beside what loads it": ("from torch import nn\nHERE\n", "import torch\nfrom torch import nn\nHERE\n"),
    "beside a part under a name": ("import torch.nn as nn\nHERE\n", "import torch\nimport torch.nn as nn\nHERE\n"),
    "after the imports": ("import os\nimport sys  # x\n\nHERE\n", "import os\nimport sys  # x\nimport torch\n\nHERE\n"),
    "after the future": (
        '"""doc"""\nfrom __future__ import annotations\n\nHERE\n',
        '"""doc"""\nfrom __future__ import annotations\nimport torch\n\nHERE\n',
    ),
    "after the docstring": ('"""doc\n"""\n\nHERE\n', '"""doc\n"""\n\nimport torch\n\nHERE\n'),
    "after the shebang": ("#!/usr/bin/python\n# ours\n\nHERE\n", "#!/usr/bin/python\n# ours\n\nimport torch\n\nHERE\n"),
    "at the beginning": ("HERE", "import torch\n\nHERE"),
    "in a line of several": ("import os; HERE", "import os; import torch; HERE"),
    "before in a line of several": (
        "import os; from torch import nn; HERE",
        "import os; import torch; from torch import nn; HERE",
    ),
    "after a docstring in a line": ('"""doc"""; HERE', '"""doc"""; import torch; HERE'),
    "below a comment of the import's": (
        "# layers\nfrom torch import (\n    nn,  # all\n)  # x\nHERE\n",
        "# layers\nfrom torch import (\n    nn,  # all\n)  # x\nimport torch\nHERE\n",
    ),
    "in the function that loads it": (
        "def f():\n    from torch import nn\n    HERE\n",
        "def f():\n    import torch\n    from torch import nn\n    HERE\n",
    ),
    "not in a branch": (
        "import os\n\ndef f(x):\n    if x:\n        from torch import nn\n    HERE\n",
        "import os\nimport torch\n\ndef f(x):\n    if x:\n        from torch import nn\n    HERE\n",
    ),
    "not in another function": (
        "import os\n\ndef f():\n    import torch\n\ndef g():\n    HERE\n",
        "import os\nimport torch\n\ndef f():\n    import torch\n\ndef g():\n    HERE\n",
    ),
    "though a type checker has it": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import torch\n\nHERE\n",
        "from typing import TYPE_CHECKING\nimport torch\n\nif TYPE_CHECKING:\n    import torch\n\nHERE\n",
    ),
}  # fmt: skip
IMPORTED = {
    "plainly": "import torch\nHERE\n",
    "by a part of it": "import torch.nn\nHERE\n",
    "under its own name": "import torch as torch\nHERE\n",
    "where it may be missing": "try:\n    import torch\nexcept ImportError:\n    torch = None\nHERE\n",
    "in the function": "def f():\n    import torch\n    HERE\n",
    "around what loads it": "import torch\ndef f():\n    assert torch\n    from torch.cuda import amp\n    HERE\n",
    "around the function": "def f():\n    import torch\n    def g():\n        HERE\n",
}
TAKEN = {
    "by an argument": "import torch\ndef f(torch):\n    HERE\n",
    "by another module": "import mytorch as torch\nHERE\n",
    "by something imported": "from compat import torch\nHERE\n",
    "by an assignment": "torch = lazy('torch')\nHERE\n",
    "by a function": "def torch(): pass\nHERE\n",
}


def edits(text: str) -> tuple[Edit, ...] | None:
    source = Source.parse(text, "file.py")
    assert isinstance(source, Source)
    (here,) = [node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "HERE"]
    return importing(source, "torch", here)


@pytest.mark.parametrize("name", PLACES)
def test_an_import_is_added(name: str) -> None:
    before, after = PLACES[name]
    found = edits(before)
    assert found is not None
    (edit,) = found
    assert (edit.span.row, edit.span.column) == (edit.span.end_row, edit.span.end_column)
    lines = before.splitlines(keepends=True)
    at = sum(map(len, lines[: edit.span.row - 1])) + edit.span.column - 1
    assert before[:at] + edit.content + before[at:] == after


@pytest.mark.parametrize("name", IMPORTED)
def test_none_is_needed(name: str) -> None:
    assert edits(IMPORTED[name]) == ()


@pytest.mark.parametrize("name", TAKEN)
def test_none_is_possible_where_the_name_is_taken(name: str) -> None:
    assert edits(TAKEN[name]) is None


def test_a_package_that_has_it_under_another_name_may_have_a_module_of_that_name() -> None:
    """In `thing/__init__.py`, `torch` may be `thing.torch`."""
    text = "import torch as th\n\nHERE\n"
    for name, possible in (("thing/__init__.py", False), ("thing/core.py", True)):
        source = Source.parse(text, name)
        assert isinstance(source, Source)
        assert (importing(source, "torch", source.tree.body[-1]) is not None) == possible
