"""Runs real programs with and without the audit, and writes docs/clients.md of what came of it.

    python -m tests.clients [--python PYTHON] [--mirror FOLDER] [--limit SECONDS] [--jobs N] [--evidence] [NAME ...]

Each client runs plain, on the CPU, and under `devlint audit` on the simulated accelerator; and there without the audit,
too, where the two do not print the same. ``PYTHON`` has the
libraries and what devlint needs; a client whose library it lacks is told as not run. ``FOLDER`` has clones of the
repositories whose scripts are run, as ``owner+name``. With ``--evidence`` the clients that have a library are audited
with that library beside them, as in a checkout, and it is checked without and with what the run teaches; Python 3.12.
Without names all clients; what is known of the others is kept. Ends with 1 if devlint crashed somewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.clients import page
from tests.clients.catalog import Client, chosen
from tests.clients.running import Outcome, audited, commit, lay, plain, simulated
from tests.clients.teaching import packages_of, taught

_VERSIONS = """
import importlib.metadata as found, json, sys
versions = {}
for name in sys.argv[1:]:
    try:
        versions[name] = found.version(name)
    except found.PackageNotFoundError:
        versions[name] = None
print(json.dumps(versions))
"""


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.clients")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--mirror", type=Path)
    parser.add_argument("--limit", type=float, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--evidence", action="store_true")
    options = parser.parse_args(arguments)
    clients = chosen(tuple(options.names))
    if unknown := set(options.names) - {client.name for client in clients}:
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    python, results = os.path.abspath(options.python), page.load()
    part = "taught" if options.evidence else "runs"
    packages = packages_of(python)

    def row_of(client: Client) -> tuple[str, dict[str, Any]]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            if options.evidence:
                row = asdict(taught(client, python, packages, Path(folder), options.limit))
            else:
                row = measured(client, python, options.mirror, Path(folder), options.limit)
            # where it was laid out is nothing to its readers
            return client.name, row | {"failure": row["failure"].replace(f"{folder}{os.sep}", "")}

    with ThreadPoolExecutor(options.jobs) as pool:
        chosen_ones = [client for client in clients if client.library or not options.evidence]
        for done in as_completed([pool.submit(row_of, client) for client in chosen_ones]):
            name, row = done.result()
            results[part][name] = row
            print(name, json.dumps(row), flush=True)
            page.store(results)
    return int(any(row["crashed"] for row in results["runs"].values()))


def measured(client: Client, python: str, mirror: Path | None, folder: Path, limit: float) -> dict[str, Any]:
    """A row of the first table; ``failure`` says why the client did not run."""
    row: dict[str, Any] = {"failure": "", "crashed": False}
    versions = _versions(python, client.needs)
    told = [f"{name} {version}" for name, version in versions.items() if version]
    if client.repository:
        told.append(f"{client.repository}@{commit(client, mirror) if mirror else ''}")
    row["versions"] = ", ".join(told)
    if missing := [name for name, version in versions.items() if version is None]:
        return row | {"failure": f"not installed: {', '.join(missing)}"}
    script = lay(client, folder, mirror)
    if script is None:
        return row | {"failure": "the mirror does not have the script"}
    without = plain(client, script, python, limit)
    if without.code != 0:
        return row | {"failure": f"without devlint, too: {_last_line(without)}"}
    outcome, report = audited(client, script, python, limit, folder / "run.json")
    row["crashed"] = report.crashed
    same = outcome.code == 0 and outcome.numbers == without.numbers
    on_device = None if same else simulated(client, script, python, limit)
    if outcome.code != 0 and on_device is not None:
        where = "with the audit" if on_device.code == 0 else "on the simulated accelerator"
        return row | {"failure": f"{where}: {_last_line(outcome if on_device.code == 0 else on_device)}"}
    return row | {
        "steps": report.steps,
        "in_short": report.in_short or "nothing is copied and nothing waits",
        "findings": "".join(f"{code}, " for code in sorted({one["code"] for one in report.findings})),
        "losses": _losses(client, outcome, on_device),
        "ratio": round(outcome.seconds / without.seconds, 2),
    }


def _losses(client: Client, outcome: Outcome, on_device: Outcome | None) -> str:
    if not outcome.numbers:
        return "prints none"
    if on_device is None:
        return "as on the CPU, to the bit"
    if outcome.numbers == on_device.numbers:
        return f"as without the audit, to the bit; the CPU's are others{client.differs and f': {client.differs}'}"
    return f"differ: {client.differs or 'unexplained'}"


def _last_line(outcome: Outcome) -> str:
    if outcome.code is None:
        return f"it did not end in {outcome.seconds:.0f} s"
    lines = [line.strip() for line in outcome.errors.splitlines() if line and not line[0].isspace()]
    errors = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (errors or lines or [f"it ended with {outcome.code}"])[-1][:200]


def _versions(python: str, names: tuple[str, ...]) -> dict[str, str | None]:
    asked = subprocess.run([python, "-c", _VERSIONS, *names], capture_output=True, text=True, check=True)
    found: dict[str, str | None] = json.loads(asked.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
