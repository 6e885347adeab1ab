"""The vocabulary of library rows, and devlint's own files of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.flow.catalog import libraries, schema
from devlint.flow.catalog.libraries import BUILT_IN, Catalog, Layer
from devlint.flow.catalog.schema import RowError
from devlint.source.files import toml

DATA = Path(libraries.__file__).parent / "data"


def layer(text: str) -> Layer:
    """The rows of a file."""
    made = Layer()
    made.add(toml(text.encode()))
    return made


def fault(text: str) -> RowError:
    """What is wrong with a file."""
    with pytest.raises(RowError) as raised:
        layer(text)
    return raised.value


# --- What devlint brings along ------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", libraries.packages())
def test_a_file_speaks_of_the_package_that_it_is_called_after(package: str) -> None:
    rows = list(schema.tables(toml((DATA / f"{package}.toml").read_bytes())))
    assert rows
    assert {key.partition(".")[0] for key, _ in rows} == {package}
    for key, words in rows:
        schema.check(key, words)


def test_a_package_is_read_when_it_is_asked_for() -> None:
    assert BUILT_IN.row("torchmetrics.Accuracy") is not None
    assert BUILT_IN.row("nobody.knows.this") is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("torch.functional.einsum", "torch.einsum"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("lightning.pytorch.LightningModule", "pytorch_lightning.LightningModule"),
        ("torch.nn.Linear", "torch.nn.Linear"),
        (".modules.Linear", ".modules.Linear"),
    ],
)
def test_a_name_has_one_spelling(name: str, meant: str) -> None:
    assert libraries.canonical(name) == meant


# --- Names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "covered", "others"),
    [
        ("a.*", ["a.b"], ["a", "a.b.c", "ab.c"]),
        ("a.**", ["a.b", "a.b.c"], ["a", "ab.c"]),
        ("a.**.c", ["a.c", "a.b.c", "a.b.b.c"], ["a.b", "a.bc", "a.c.b"]),
        ("a.**.[a-z]*", ["a.b", "a.B.b"], ["a.B", "a.b.B"]),
        ("a.make_*", ["a.make_this"], ["a.make", "a.make_this.too"]),
    ],
)
def test_wildcards(pattern: str, covered: list[str], others: list[str]) -> None:
    catalog = Catalog([layer(f'["{pattern}"]\nresult = "tensor"')])
    assert [catalog.row(name) is not None for name in covered] == [True] * len(covered)
    assert [catalog.row(name) is not None for name in others] == [False] * len(others)


def test_what_says_more_of_a_name_comes_later_and_adds_to_what_says_less() -> None:
    rows = '["a.**"]\nresult = "unknown"\nwaits = true\n["a.b.*"]\nresult = "number"\n["a.b.c"]\nis = "module"\n'
    catalog = Catalog([layer(rows)])
    stated = [catalog.row(name) for name in ("a.x", "a.b.x", "a.b.c")]
    assert [(row.result, row.is_a, row.waits) for row in stated if row] == [
        ("unknown", "", True),
        ("number", "", True),
        ("", "module", True),
    ]


def test_names_narrow_a_pattern_down() -> None:
    catalog = Catalog([layer('[["a.*"]]\nnames = "b c"\nwaits = true\n[["a.*"]]\nnames = "c d"\nelementwise = true\n')])
    rows = {name: catalog.row(f"a.{name}") for name in "bcde"}
    assert {name: (row.waits, row.elementwise) for name, row in rows.items() if row} == {
        "b": (True, False),
        "c": (True, True),
        "d": (False, True),
    }


def test_a_pattern_speaks_of_no_method_that_it_does_not_name() -> None:
    catalog = Catalog([layer('["a.**"]\nresult = "unknown"\n["a.**.update"]\nresult = "call"\n')])
    named = catalog.method("a.Class.update")
    assert named is not None
    assert named.result == "call"
    assert catalog.method("a.Class.to") is None


def test_keys_may_stand_without_quotes() -> None:
    row = Catalog([layer('[my_project.utils.to_gpu]\nresult = "argument:0"\n')]).row("my_project.utils.to_gpu")
    assert row is not None
    assert row.result == "argument:0"


def test_who_comes_first_decides_alone() -> None:
    own = layer('["math.sqrt"]\nwaits = true\n')
    package = layer('["math.sqrt"]\nresult = "tensor"\n["math.exp"]\nresult = "tensor"\n')
    catalog = Catalog([own, package])
    stated = [catalog.row(f"math.{name}") for name in ("sqrt", "exp", "sin")]
    assert [(row.result, row.waits) for row in stated if row] == [("", True), ("tensor", False), ("number", True)]


# --- Mistakes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('["a.b"]\nresutl = "tensor"', "[\"a.b\"]: unknown word 'resutl'"),
        ('["a.b"]\nresult = "tensr"', "[\"a.b\"]: result: expected argument:NAME, 'self', 'call', "),
        ('["a.b"]\nresult = "argument:"', '["a.b"]: result: expected argument:NAME, '),
        ('["a.b"]\nresult = 3', '["a.b"]: result: expected a string'),
        ('["a.b"]\nwaits = "always"', '["a.b"]: waits: expected true or false'),
        ('["a.b"]\nmust-be-cpu = "x"', '["a.b"]: must-be-cpu: expected a list of strings'),
        ('["a.b"]\nruns = ["tests"]', "[\"a.b\"]: runs: expected 'training' or 'processes', not 'tests'"),
        ('["a.b"]\nalias-of = "c d"', "[\"a.b\"]: alias-of: expected a dotted name, not 'c d'"),
        ('["a.b"]\nalias-of = "c"\nwaits = true', '["a.b"]: alias-of says all, but waits stands beside it'),
        ('["a.b"]\nresult = "tensor"\nis = "module"', '["a.b"]: result is for a function, is for a class: say one'),
        ('["a.b"]\nplace = "cpu"', '["a.b"]: place needs a result, or what it is'),
        ('["a.b"]\nresult = "tensor"\nplace = "gpu"', '["a.b"]: place: expected argument:NAME, '),
        ('["a.b"]\nresult = "argument:0"\naccepts-cpu = ["*"]', '["a.b"]: accepts-cpu = ["*"] is for a wrapper that'),
        ('["a.b"]\nnames = "c"', '["a.b"]: names belongs to a pattern, such as package.*'),
        (
            '["a.b"]\nparameters = ["x"]\nresult = "argument:y"',
            "[\"a.b\"]: result: 'y' is not among the parameters",
        ),
        ('["*.b"]\nwaits = true', "['*.b']: expected a dotted name, whose first part is no pattern"),
        ('waits = true', "'waits' stands outside of any row: expected a table such as [\"package.function\"]"),
    ],
)  # fmt: skip
def test_what_is_not_in_the_vocabulary_is_an_error(text: str, said: str) -> None:
    assert str(fault(text)).startswith(said)


def test_two_rows_of_one_name_are_an_error() -> None:
    made = layer('["a.b"]\nwaits = true\n')
    with pytest.raises(RowError, match="there are two rows of this name"):
        made.add(toml(b'["a.b"]\nelementwise = true\n'))


def test_a_mistake_knows_what_was_meant() -> None:
    assert (fault('["a.b"]\nresutl = "tensor"').word, fault('["a.b"]\nis = "modul"').word) == ("resutl", "modul")
    assert "module" in fault('["a.b"]\nis = "modul"').known
    assert fault('["a.b"]\nresult = "tensor"\nplace = "gpu"').word == "accelerator"
