"""Mentions: which names of torch make a site, what is done with them, and what is there for another version's sake."""

from __future__ import annotations

import ast
import textwrap

import pytest

from devlint import torch_api
from devlint.sites.devices import Mention
from devlint.torch_api import rows
from tests.flow import reading


def mentions(code: str) -> list[Mention]:
    return reading.sites(f"\n{textwrap.dedent(code)}", Mention)


NAMES = {
    "in full": ("torch.cuda.amp.autocast()", "torch.cuda.amp.autocast"),
    "imported": ("from torch.cuda.amp import autocast as ac\nac()", "torch.cuda.amp.autocast"),
    "a module imported": ("import torch.cuda.amp as amp\namp.autocast()", "torch.cuda.amp.autocast"),
    "from the private home": (
        "from torch.cuda.amp.autocast_mode import autocast\nautocast()",
        "torch.cuda.amp.autocast_mode.autocast",
    ),
    "imported in the function": (
        "def f():\n    from torch.cuda.amp import GradScaler\n    GradScaler()",
        "torch.cuda.amp.GradScaler",
    ),
    "by a star": ("from torch.cuda.amp import *\nautocast()", "torch.cuda.amp.autocast"),
    "under another name": ("mixed = torch.cuda.amp.autocast\nmixed()", "torch.cuda.amp.autocast"),
    "in a method": ("class C:\n    def f(self):\n        torch.cuda.synchronize()", "torch.cuda.synchronize"),
    "in a default": ("class C:\n    def f(self, n=torch.cuda.device_count()): ...", "torch.cuda.device_count"),
    "in a lambda": ("f = lambda: torch.cuda.synchronize()", "torch.cuda.synchronize"),
}


@pytest.mark.parametrize(("code", "path"), NAMES.values(), ids=NAMES)
def test_a_call_is_one_mention_of_the_whole_name(code: str, path: str) -> None:
    called = [site for site in mentions(code) if site.call is not None]
    assert [(site.path, isinstance(site.call, ast.Call), site.use) for site in called] == [(path, True, "")]


SILENT = {
    "a name that no table knows": "torch.zeros(3)",
    "another object's attribute": "def f(torch):\n    torch.cuda.synchronize()",
    "another library": "import cupy\ncupy.cuda.Stream()",
    "an annotation": "def f(x: torch.cuda.FloatTensor) -> torch.cuda.Stream: ...",
    "code that is not reached": "def f():\n    return 1\n    torch.cuda.synchronize()",
    "for the type checker": "import typing\nif typing.TYPE_CHECKING:\n    from torch.cuda.amp import autocast",
}


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_no_mention(code: str) -> None:
    assert not mentions(code)


USES = {
    "reference": ("f(torch.cuda.amp.autocast)", [""]),
    "import": ("from torch.cuda.amp import autocast", ["import"]),
    "decorator": ("@torch.cuda.amp.custom_fwd\ndef f(): ...", ["decorator"]),
    "called decorator": ("class C:\n    @torch.cuda.amp.autocast()\n    def f(self): ...", ["decorator"]),
    "isinstance": ("isinstance(x, torch.cuda.amp.GradScaler)", ["comparison"]),
    "is": ("x is torch.cuda.amp.GradScaler", ["comparison"]),
    "if": ("if torch.cuda.is_available: ...", ["", "test"]),
    "if not": ("if not torch.cuda.is_available: ...", ["", "test"]),
    "ternary": ("x = 1 if torch.cuda.is_available else 2", ["", "test"]),
    "and": ("x = y and torch.cuda.is_available", ["", "test"]),
    "under another name": ("cuda = torch.cuda.is_available\nif cuda: ...", ["", "", "test"]),
    "a default that may be called": ("x = y or torch.cuda.is_available", [""]),
    "called": ("if torch.cuda.is_available(): ...", [""]),
}


@pytest.mark.parametrize(("code", "uses"), USES.values(), ids=USES)
def test_use(code: str, uses: list[str]) -> None:
    assert [site.use for site in mentions(code)] == uses


SHIMS = {
    "try": """
        try:
            torch.cuda.amp.autocast()
        except AttributeError:
            pass
    """,
    "handler": """
        try:
            from torch import amp
        except ImportError:
            torch.cuda.amp.autocast()
    """,
    "imported in a try": """
        try:
            from torch.cuda.amp import autocast
        except ImportError:
            autocast = None
        def f():
            with autocast():
                pass
    """,
    "hasattr": """
        def f():
            if not hasattr(torch, "amp"):
                torch.cuda.amp.autocast()
    """,
    "early exit": """
        def f():
            if hasattr(torch.amp, "autocast"):
                return torch.amp.autocast("cuda")
            return torch.cuda.amp.autocast()
    """,
    "hasattr under a name": """
        NEW = hasattr(torch, "amp")
        def f():
            return torch.amp.autocast("cuda") if NEW else torch.cuda.amp.autocast()
    """,
    "and": 'hasattr(torch.cuda, "amp") and torch.cuda.amp.autocast()',
    "version": """
        from packaging import version
        if version.parse(torch.__version__) < version.parse("2.4"):
            torch.cuda.amp.autocast()
    """,
    "version under a name": """
        old = int(torch.__version__.split(".")[0]) < 2
        def f():
            if old:
                torch.cuda.amp.autocast()
    """,
    "a flag's name": """
        from helpers import TORCH_2_4
        def f():
            if TORCH_2_4:
                return
            torch.cuda.amp.autocast()
    """,
    "a function's name": """
        from helpers import is_torch_version
        if is_torch_version("<", "2.4"):
            torch.cuda.amp.autocast()
    """,
    "a definition": """
        if not hasattr(torch, "amp"):
            class Old:
                def f(self):
                    torch.cuda.amp.autocast()
    """,
}


@pytest.mark.parametrize("code", SHIMS.values(), ids=SHIMS)
def test_shim(code: str) -> None:
    called = [site for site in mentions(code) if site.call is not None]
    assert called
    assert all(site.shim for site in called)


NO_SHIMS = {
    "another error": """
        try:
            torch.cuda.amp.autocast()
        except RuntimeError:
            pass
    """,
    "another condition": """
        def f(x, conversion):
            if conversion and x.dtype == torch.float32:
                torch.cuda.amp.autocast()
    """,
    "after the shim": """
        if hasattr(torch, "amp"):
            x = 1
        else:
            x = 2
        torch.cuda.amp.autocast()
    """,
    "beside the definition": """
        if hasattr(torch, "amp"):
            def g(): ...
        def f():
            torch.cuda.amp.autocast()
    """,
}


@pytest.mark.parametrize("code", NO_SHIMS.values(), ids=NO_SHIMS)
def test_no_shim(code: str) -> None:
    assert [site.shim for site in mentions(code) if site.call is not None] == [False]


def test_a_mention_knows_its_surroundings() -> None:
    (mention,) = mentions("""
        def f(n):
            if torch.cuda.is_available():
                for i in range(n):
                    torch.cuda.synchronize()
    """)[1:]
    assert (mention.scope.guarded, mention.scope.function, mention.scope.loop is not None) == (True, "f", True)


def test_rows_are_whole() -> None:
    from devlint.torch_api import deprecated, portable

    for row in (*deprecated.ROWS, *portable.ROWS):
        assert row.name.startswith("torch."), row
        assert torch_api.matters(row.name) or torch_api.arguments(row.name), row
        assert bool(row.replacement) is (row.kind not in (rows.Kind.NOTHING, rows.Kind.DROPPED)), row
        assert not (row.kind is rows.Kind.NOTHING and row.safe), row


def test_a_replacement_newer_than_the_target_is_not_offered() -> None:
    row = rows.Api("torch.old", rows.Kind.RENAMED, "torch.new", since=(2, 3))
    assert [row.offered(target) for target in (None, (2, 2), (2, 3), (2, 4))] == [True, False, True, True]
