"""``devlint models``: what rows state beside what a run shows, and first drafts of rows."""

from __future__ import annotations

import os
import sys

import click

OK, DIFFERS, FAILED = 0, 1, 2


@click.group()
def models() -> None:
    """Prove rows of libraries, or draft them, on the simulated accelerator.

    Unlike `devlint check`, this imports and calls what the rows describe; it needs torch, and no GPU.
    """


@models.command()
@click.argument("file", type=click.Path())
def check(file: str) -> None:
    """Call each entry of FILE, and say where what is stated and what a run shows differ.

    Exit codes: 0 if nothing differs, 1 if something does, 2 if the file is wrong or an entry cannot be called.
    """
    raise SystemExit(_check(file))


def _check(file: str) -> int:
    from devlint.check.project.models import read
    from devlint.config.schema import ConfigError

    try:
        layer = read((file,))
        _simulate()
    except (ConfigError, ImportError, RuntimeError) as error:
        click.echo(f"error: {' '.join(str(error).split())}", err=True)
        return FAILED
    from devlint.flow.catalog.libraries import Catalog
    from devlint.models.proof import prove

    sys.path.insert(0, os.getcwd())
    verdicts = [prove(key, Catalog([layer])) for key in dict.fromkeys(layer.keys)]
    for verdict in verdicts:
        for line in verdict.differs or [verdict.unproven or f"shown: {', '.join(verdict.shown)}"]:
            click.echo(f"{verdict.key}: {line}")
    counts = [
        sum(bool(one.shown) and not one.differs for one in verdicts),
        sum(bool(one.differs) for one in verdicts),
        sum(bool(one.unproven) for one in verdicts),
    ]
    click.echo("{} shown, {} different, {} not shown.".format(*counts))
    if counts[1]:
        return DIFFERS
    return FAILED if any(one.unproven.startswith("cannot") for one in verdicts) else OK


def _simulate() -> None:
    """Give this process a simulated accelerator; a RuntimeError or ImportError says why it can have none."""
    from devlint.simulator import install

    install(2)
