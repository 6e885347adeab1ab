"""Run test suites of other projects on the CPU and on the simulated accelerator, and compare.

``python -m tests.suites --help`` says what there is.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from . import __doc__ as manual
from .comparing import compare, read_reasons
from .report import RESULTS, figures, row, store, stored, write
from .running import kept, run
from .table import SUITES, Suite, chosen


def main() -> int:
    """0 if each difference has a reason, 1 if not, 2 if a suite could not be run."""
    options = _options()
    if options.list:
        for suite in SUITES:
            print(
                f"{suite.name}\n  needs: {suite.needs}\n  runs: {' '.join(suite.tests)}\n  left out: {suite.left_out}"
            )
        return 0
    options.logs.mkdir(parents=True, exist_ok=True)
    status = 0
    for suite in chosen(options.suite):
        source = suite.source(options.sources) if options.sources or suite.own else None
        if source is None:
            print(f"{suite.name}: no source package of it in {options.sources}")
            status = max(status, 2 if options.suite else 0)
        else:
            status = max(status, _side_by_side(suite, source, options))
    write(stored(), options.page)
    return status


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.suites", description=manual, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("sources", nargs="?", type=Path, help="the folder with unpacked source packages or clones")
    add("--list", action="store_true", help="tell what each suite needs and what is run of it")
    add("--suite", action="append", default=[], choices=[one.name for one in SUITES], help="only this (repeatable)")
    add("--python", default=sys.executable, help="the Python that has what the suites need (this one)")
    add("--limit", type=float, default=300, metavar="SECONDS", help="the time for each of the two runs (300)")
    add("--page", type=Path, default=RESULTS, help="the page to write (%(default)s)")
    add("--logs", type=Path, default=Path(tempfile.gettempdir()) / "devlint-suites", help="where logs go (%(default)s)")
    add("--kept", action="store_true", help="run nothing: compare what the last run left in the folder of logs")
    return parser.parse_args()


def _side_by_side(suite: Suite, source: Path, options: argparse.Namespace) -> int:
    runs = []
    for simulated in (False, True):
        log = options.logs / f"{re.sub('[^a-z0-9]+', '_', suite.name.lower())}_{'cuda' if simulated else 'cpu'}.log"
        runs.append(kept(log) if options.kept else run(suite, source, options.python, simulated, options.limit, log))
        if runs[-1].note:
            print(f"{suite.name}: pytest ran no test (see {log}):\n{runs[-1].note}")
            return 2
    comparison = compare(suite.name, *runs, read_reasons())
    found = stored()
    found[suite.name] = figures(suite, _version(suite, source, options.python), comparison)
    store(found)
    print(row(suite.name, found[suite.name]), flush=True)
    for one in comparison.differences:
        reason = f"{one.reason.kind}: {one.reason.text}" if one.reason else "UNEXPLAINED"
        print(f"  {one.outcome.outcome} {one.test}\n    {reason}\n    {one.outcome.message[:300]!r}")
    return int(any(one.reason is None for one in comparison.differences))


def _version(suite: Suite, source: Path, python: str) -> str:
    """The version that the source states, of its package or of torch."""
    if suite.own:
        code = "import torch; print(torch.__version__)"
        return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    named = re.search(r"-v?(\d[\w.]*)$", source.name)
    if named:
        return named[1]
    if (source / "VERSION").is_file():
        return (source / "VERSION").read_text(encoding="utf-8").strip()
    for path in sorted((source / suite.path).glob("*/*.py")):
        if path.name in ("__init__.py", "version.py", "__about__.py", "_version.py"):
            stated = re.search(r"""^__version__(?:: str)? = ["']([^"']+)""", path.read_text(encoding="utf-8"), re.M)
            if stated:
                return stated[1]
    return "-"


if __name__ == "__main__":
    sys.exit(main())
