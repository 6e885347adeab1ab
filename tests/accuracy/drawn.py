"""Draw 200 findings in real code at random, and hold them to what a reader wrote down about each.

The findings are those that `devlint check` reports without any configuration, hints included, in the wheels of
`python -m tests.ecosystem` and in 13 repositories at the commits of `tests/accuracy/repositories.py`. The draw is
plain: each finding has the same chance, whatever its rule or project. `drawn.csv` has a verdict on each:

right      a maintainer would agree that it is true, and worth saying at that severity
wrong      it is not true
debatable  it is true and not worth saying there, or it cannot be settled by reading; counted as not right

    python -m tests.accuracy.drawn --mirror DIR            draw, and fail unless enough of them are right
    python -m tests.accuracy.drawn --mirror DIR --show     print the drawn findings that nobody has read
    python -m tests.accuracy.drawn --mirror DIR --update   give those a row with a question mark

DIR has a bare clone of each repository at DIR/owner+name/repo. The wheels are downloaded once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.accuracy.drawing import (
    SHARE_OF_A_RULE,
    SHARE_OF_ALL,
    DrawingError,
    Found,
    Reading,
    Tally,
    draw,
    found_in,
    load,
    match,
    shortfalls,
    store,
    tallies,
    without_twins,
)
from tests.accuracy.figures import Figures, Table, save
from tests.accuracy.repositories import REPOSITORIES, MirrorError, unpack
from tests.ecosystem.errors import EcosystemError
from tests.ecosystem.reported import check, excerpt
from tests.ecosystem.verdicts import DEBATABLE, RIGHT, WRONG
from tests.ecosystem.wheels import WHEELS, default_cache, unpacked

VERDICTS = Path(__file__).with_name("drawn.csv")


def main() -> int:
    """0 if enough is right, 1 if not or if something is unread, 2 if it could not be found out."""
    options = _options()
    try:
        with tempfile.TemporaryDirectory(prefix="devlint-drawn-") as scratch:
            return _run(options, Path(scratch).resolve())
    except (DrawingError, EcosystemError, MirrorError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.accuracy.drawn", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--mirror", type=Path, required=True, metavar="DIR", help="bare clones of the repositories")
    add("--cache", type=Path, default=default_cache(), metavar="DIR", help="where the wheels are kept (%(default)s)")
    add("--show", action="store_true", help="print the drawn findings that nobody has read, with their code")
    add("--context", type=int, default=12, metavar="N", help="lines of code around a shown finding (12)")
    add("--update", action="store_true", help="give each of them a row with a question mark")
    add("--jobs", metavar="N", help="devlint's own -j")
    return parser.parse_args()


def _run(options: argparse.Namespace, scratch: Path) -> int:
    folders: dict[str, Path] = {}
    population = without_twins(_findings(options, scratch, folders))
    reading = match(draw(population), load(VERDICTS))
    if options.update:
        store(VERDICTS, reading)
    for found in reading.unread:
        print(f"unread: {found.place.project} {found.finding.identity}")
        if options.show:
            print(excerpt(found.finding, folders[found.place.project], options.context))
    if reading.unread:
        print(f"{len(reading.unread)} of the drawn findings have no verdict: see --show and --update.")
        return 1
    rows = tallies(population, reading)
    print("\n".join(_lines(rows)))
    missing = shortfalls(rows)
    print("\n".join(missing))
    save("drawn", _figures(rows, reading))
    return int(bool(missing))


def _findings(options: argparse.Namespace, scratch: Path, folders: dict[str, Path]) -> Iterator[Found]:
    """All default findings, project by project; ``folders`` learns where the code of each lies."""
    projects = [(wheel.name, wheel.version, unpacked(wheel, options.cache)) for wheel in WHEELS]
    for repository in REPOSITORIES:
        folder = scratch / repository.name.replace("/", "+")
        unpack(repository, options.mirror, folder)
        projects.append((repository.name, repository.version, folder))
    jobs = ["-j", options.jobs] if options.jobs else []
    for name, version, folder in projects:
        folders[name] = folder
        found = found_in(name, version, check(folder, jobs))
        print(f"{name} {version}: {len(found)} findings", flush=True)
        yield from found


def _lines(rows: list[Tally]) -> Iterator[str]:
    yield f"{'rule':8}{'found':>7}{'read':>7}{'right':>7}{'wrong':>7}{'debatable':>11}"
    for row in rows:
        yield f"{row.code:8}{row.found:7}{row.read:7}{row.right:7}{row.wrong:7}{row.debatable:11}"


def _figures(rows: list[Tally], reading: Reading) -> Figures:
    total = rows[-1]
    words = [verdict.verdict for verdict in reading.others]
    right, wrong, debatable = (words.count(word) for word in (RIGHT, WRONG, DEBATABLE))
    read = (
        f"Of the {total.found} findings that `devlint check` reports without configuration in {len(WHEELS)} released "
        f"packages and {len(REPOSITORIES)} repositories, {total.read} were drawn at random and read in their code: "
        f"{total.right} are right ({total.share:.1%}), {total.wrong} wrong and {total.debatable} debatable, which "
        f"counts as not right. At least {SHARE_OF_ALL:.0%} are promised, and {SHARE_OF_A_RULE:.0%} of each rule that "
        "was drawn."
    )
    before = (
        "The verdicts, each with its reason, are in `tests/accuracy/drawn.csv`. They are one reader's, who also saw to "
        "it that the causes of the wrong ones were mended, and drew again then. So the first draws count, too: "
        f"{len(words)} other findings were read, which are not among the {total.read} any more, and of them {right} "
        f"are right, {wrong} wrong and {debatable} debatable. Of a rule of which few were drawn, the share says little."
    )
    columns = ("rule", "found", "read", "right", "wrong", "debatable")
    table = Table("", columns, [(row.code, row.found, row.read, *row[2:]) for row in rows])
    return Figures(
        "Findings in real code, read", "python -m tests.accuracy.drawn --mirror DIR", f"{read}\n\n{before}", (table,)
    )


if __name__ == "__main__":
    sys.exit(main())
