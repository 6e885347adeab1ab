"""``devlint models``: what rows state beside what a run shows, and first drafts of rows."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

import click

from devlint.simulator import install

DIFFERS, FAILED = 1, 2


@click.group()
def models() -> None:
    """Prove rows of libraries, or draft them, on the simulated accelerator.

    Unlike `devlint check`, this imports and calls what the rows describe; it needs torch, and no GPU.
    """


@models.command()
@click.argument("file", type=click.Path())
def check(file: str) -> None:
    """Call what each row of FILE describes, and say where what is stated and what a run shows differ.

    Exit codes: 0 if nothing differs, 1 if something does, 2 if the file is wrong or something cannot be called.
    """
    from devlint.check.project.models import read
    from devlint.config.schema import ConfigError

    try:
        layer = read((file,))
        if not layer.keys:
            click.echo(f"{file} has no rows.")
            return
        install(2)
    except (ConfigError, ImportError, RuntimeError) as error:
        _fail(error)
    from devlint.flow.catalog.libraries import Catalog
    from devlint.models.proof import prove

    root = os.getcwd()
    with _apart():
        verdicts = [prove(key, Catalog([layer]), root) for key in dict.fromkeys(layer.keys)]
    for verdict in verdicts:
        for line in verdict.lines():
            click.echo(f"{verdict.key}: {line}")
    shown = sum(bool(one.shown) and not one.differs for one in verdicts)
    different = sum(bool(one.differs) for one in verdicts)
    click.echo(f"{shown} shown, {different} different, {sum(bool(one.unproven) for one in verdicts)} not shown.")
    if different:
        sys.exit(DIFFERS)
    if any(one.unproven.startswith("cannot") for one in verdicts):
        sys.exit(FAILED)


@models.command()
@click.argument("module")
def infer(module: str) -> None:
    """Draft rows for MODULE by calling its public functions, and those of its classes.

    MODULE is a dotted name, of a module, or of one function or class.  It is imported, and all of it is called, with
    made-up arguments, in an empty folder: do not name what sends or deletes.  The rows are printed, in TOML, with a
    comment for each function of which no row can be drafted; `devlint models check` finds all of them shown.

    Exit codes: 0 if rows are printed, 2 if there is nothing to call.
    """
    if not all(part.isidentifier() for part in module.split(".")):
        _fail(f"expected a dotted name such as package.module, not {module!r}")
    if module.partition(".")[0] in sys.stdlib_module_names:
        _fail(f"{module} belongs to Python, and does nothing with devices")
    try:
        install(2)
    except (ImportError, RuntimeError) as error:
        _fail(error)
    from devlint.models.arguments import CannotCallError
    from devlint.models.drafts import drafts, lasting, written

    try:
        with _apart():
            found = drafts(module)
    except CannotCallError as error:
        _fail(f"{module} cannot be imported: {error}")
    if not found:
        _fail(f"{module} has no function or class of its own that is public")
    click.echo(f"# What calls of {module} have shown on a simulated accelerator. Read it before you rely on it.\n")
    click.echo(written(lasting(found)))


def _fail(error: object) -> NoReturn:
    click.echo(f"error: {' '.join(str(error).split())}", err=True)
    sys.exit(FAILED)


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """Code of the project is imported from here, runs in an empty folder, and prints to standard error."""
    import tempfile

    here, environment = os.getcwd(), dict(os.environ)
    sys.path[:0] = [here, os.path.join(here, "src")]
    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(sys.stderr):
        os.chdir(empty)
        try:
            yield
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environment)
