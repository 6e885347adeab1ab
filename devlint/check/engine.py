"""From files to findings: read, parse, run the rules, apply the suppressions, sort."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING

from devlint.check import models
from devlint.check.content import LARGEST, seen, stamp_of
from devlint.check.discover import Target, discover
from devlint.check.narrow import NOTHING_LEFT_OUT, Narrowing
from devlint.config.load import Resolver
from devlint.config.schema import Config
from devlint.finding import Failure, Finding, Span
from devlint.rules.registry import registry
from devlint.rules.selection import PARSE_ERROR, asked, graded, ignored_in, selected, validate

if TYPE_CHECKING:
    import ast

    from devlint.check.cache.results import Basis, Cache
    from devlint.check.project import Surroundings
    from devlint.rules.base import Rule
    from devlint.source.text import ParseFailure

# What reads and judges a file is imported where that is done: of files that have not changed nothing needs to be.

BYTES_WORTH_A_PROCESS = 200_000
"""Below this much code for each process, starting one costs more than it saves.

Measured on parts of timm, seconds for one process and for two: 200 kB 0.35 and 0.37, 400 kB 0.51 and 0.40, 800 kB 0.96
and 0.68; compiled, 0.23 and 0.23, 0.34 and 0.30, 0.63 and 0.45.
"""

TOO_LARGE = f"the file is larger than {LARGEST >> 20} MiB and is not read; exclude it if that is intended"
FAILED = "devlint failed on this file, please report it"
TOO_DEEP = 1_000
"""Running out of stack on a tree of this depth is no bug of ours: Python 3.12 stops compiled code soon after it."""


class AnalysisError(Exception):
    """devlint itself failed on a file; the text says how, in one line."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one file: its findings, or the line that says why devlint could not do its work.

    Of a run that fixes or adds suppressions these are what remains; ``unfixed`` is the line that says why that was not
    done. ``basis`` is what the findings hang on, for a run that remembers them.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    error: str | None = None
    unfixed: str | None = None
    fixed: int = 0
    diff: bytes = b""
    silenced: int = 0
    basis: Basis | None = None


@dataclass(frozen=True, slots=True)
class Fixing:
    """Which fixes are applied, and whether to the files: otherwise the diffs say what would be.

    Those of findings that are not reported are not.
    """

    unsafe: bool = False
    write: bool = True
    narrowing: Narrowing = NOTHING_LEFT_OUT


Task = Callable[[Target], Outcome]
"""What is done with a file, in whatever process; it can be pickled."""


@dataclass(slots=True)
class Result:
    """What came of a run: findings in order, a line for everything that could not be done, the files that were read.

    ``errors`` are about paths that could not be checked, ``unfixed`` about files that were, but could not be fixed;
    ``fixed`` counts findings that are gone, and ``diffs`` hold what would be written, in the order of the paths.
    ``silenced`` are the counts of findings, by file, for which a comment was added; ``checked`` are the files of which
    there was no error, with their configurations.
    """

    findings: list[Finding] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    files: int = 0
    unfixed: list[str] = field(default_factory=list)
    fixed: int = 0
    diffs: list[bytes] = field(default_factory=list)
    silenced: list[int] = field(default_factory=list)
    checked: list[tuple[str, Config]] = field(default_factory=list)


def check_source(
    data: bytes | str, filename: str = "<string>", config: Config | None = None, project: Surroundings | None = None
) -> list[Finding]:
    """The findings in one file's content, in order. A failure of devlint itself raises :class:`AnalysisError`.

    Without the project around it, what the file imports is not known.
    """
    from devlint.check.opened import open_file

    config = config or Config()
    try:
        opened = open_file(data, filename, config)
        return opened.located(check_code(opened.code, filename, config, project))
    except AnalysisError:
        raise
    except Exception as error:
        raise AnalysisError(_one_line(error)) from error


def check_code(data: bytes | str, filename: str, config: Config, project: Surroundings | None = None) -> list[Finding]:
    """The findings in Python code, in order, whatever the file is called that it belongs to."""
    try:
        return graded(_check(data, filename, config, active_rules(filename, config), project), config)
    except Exception as error:
        raise AnalysisError(_one_line(error)) from error


def active_rules(filename: str, config: Config) -> tuple[type[Rule], ...]:
    """The rules that judge a file."""
    ignored = ignored_in(os.path.abspath(filename), config) if config.per_file_ignores else frozenset()
    return tuple(rule for rule in _selected(config) if rule.code not in ignored)


def _check(
    data: bytes | str, filename: str, config: Config, chosen: tuple[type[Rule], ...], project: Surroundings | None
) -> list[Finding]:
    from devlint.check.suppress import suppressions
    from devlint.rules.verdicts import run
    from devlint.source.context import in_context
    from devlint.source.stack import with_deep_stack
    from devlint.source.text import ParseFailure
    from devlint.source.tree import Source

    active, catalog = frozenset(rule.code for rule in chosen), models.catalog(config)
    source = Source.parse(data, filename) if project is None else project.parse(data, filename)
    if isinstance(source, ParseFailure):
        return _parse_error(source, data, filename, active)
    try:
        found = run(source, chosen, config.target_torch, project, catalog)
    except RecursionError:
        # An `elif` chain of 300 branches nests as deep; few files need it, so only they pay for a thread.
        try:
            found = with_deep_stack(lambda: run(source, chosen, config.target_torch, project, catalog))
        except RecursionError:
            if _depth(source.tree) < TOO_DEEP:
                raise
            failure = ParseFailure("the code is nested too deeply", 1, 1)
            return _parse_error(failure, data, filename, active)
    comments = suppressions(source.text, bool(found))
    kept = comments.apply(found) if comments.comments else found
    selected_by_user = _asked(config)
    kept = [finding for finding in kept if not finding.asked or finding.code in selected_by_user]
    kept = sorted([*kept, *comments.unused(filename, active)], key=lambda finding: finding.sort_key)
    return in_context(source, kept)


def check_paths(
    paths: Iterable[str | os.PathLike[str]],
    config: Config | Resolver | None = None,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    fixing: Fixing | None = None,
) -> Result:
    """Check files and directories. Without a Config, each file's is found as the command finds it.

    ``jobs`` is the number of processes, 0 for as many as pay; ``progress`` is told the files done and the files in all.
    With ``fixing``, fixes are applied first, and the findings are what remains.
    """
    resolver = config if isinstance(config, Resolver) else Resolver(validate, config)
    discovery = discover([os.fspath(path) for path in paths], resolver)
    result = check_targets(discovery.targets, jobs, progress, fixing_task(fixing))
    result.errors[:0] = discovery.errors
    return result


def check_targets(
    targets: Sequence[Target],
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    task: Task | None = None,
    cache: Cache | None = None,
) -> Result:
    """Check files that were found already; a task does something else with each of them, and may write it.

    What the ``cache`` knows is not checked again; for a task it must be None.
    """
    if task is not None:
        targets = once(targets)
    models.look_again()
    result, diffs = Result(), []
    by_path = {target.path: target for target in targets}
    known = [] if cache is None else _known(targets, cache)
    settled = {outcome.path for outcome in known}
    left = [target for target in targets if target.path not in settled]
    for config in {id(target.config): target.config for target in left}.values():
        # what is wrong with a file of rows is better known before the work
        models.catalog(config)
    task = task or (check_target if cache is None else examine_target)
    for done, outcome in enumerate(chain(known, _outcomes(left, jobs, task)), 1):
        target = by_path[outcome.path]
        _take(result, outcome)
        if outcome.error is None:
            result.checked.append((outcome.path, target.config))
        if cache is not None and outcome.basis is not None:
            cache.keep(target, outcome.findings, outcome.basis)
        if outcome.diff:
            diffs.append((outcome.path, outcome.diff))
        if progress:
            progress(done, len(targets))
    result.findings.sort(key=lambda finding: finding.sort_key)
    result.checked.sort(key=lambda checked: checked[0])
    result.diffs += [diff for _, diff in sorted(diffs)]
    return result


def fixing_task(fixing: Fixing | None) -> Task | None:
    """What applies the fixes to a file, None where none are to be applied."""
    if fixing is None:
        return None
    from devlint.check.fixes.target import fix_target

    return partial(fix_target, fixing)


def once(targets: Iterable[Target]) -> list[Target]:
    """The targets without those that are another's file under another name: each is written once."""
    return list({os.path.realpath(target.path): target for target in reversed([*targets])}.values())[::-1]


def _take(result: Result, outcome: Outcome) -> None:
    if outcome.error is not None:
        result.errors.append(Failure(outcome.path, outcome.error))
        return
    result.files += 1
    result.fixed += outcome.fixed
    result.findings.extend(outcome.findings)
    if outcome.silenced:
        result.silenced.append(outcome.silenced)
    if outcome.unfixed is not None:
        result.unfixed.append(Failure(outcome.path, outcome.unfixed))


def check_target(target: Target) -> Outcome:
    """Check one file; whatever goes wrong is part of the outcome."""
    from devlint.check.project import surroundings

    around = surroundings(target)
    return with_content(
        target, lambda data: Outcome(target.path, tuple(check_source(data, target.path, target.config, around)))
    )


def examine_target(target: Target) -> Outcome:
    """Check one file, and say what its findings hang on."""
    from devlint.check.cache.results import Basis
    from devlint.check.project import surroundings

    around, stamp = surroundings(target), stamp_of(target.path)

    def examined(data: bytes) -> Outcome:
        findings = tuple(check_source(data, target.path, target.config, around))
        return Outcome(target.path, findings, basis=Basis(seen(data, stamp), *around.dependencies()))

    return with_content(target, examined)


def with_content(target: Target, work: Callable[[bytes], Outcome]) -> Outcome:
    """What ``work`` makes of a file's content; whatever goes wrong is part of the outcome."""
    try:
        with open(target.path, "rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        return Outcome(target.path, error=error.strerror or str(error))
    except MemoryError:
        return Outcome(target.path, error="the file does not fit into memory")
    if len(data) > LARGEST:
        return Outcome(target.path, error=TOO_LARGE)
    if target.path.endswith(".ipynb"):
        from devlint.check.notebooks.opening import foreign

        if language := foreign(data):
            # whoever names it should know; in a directory it is one of the files that are not devlint's business
            reason = None if target.given else f"its cells are in {language}, not in Python"
            return Outcome(target.path, error=reason)
    try:
        return work(data)
    except AnalysisError as error:
        return Outcome(target.path, error=f"{FAILED}: {error}")


def processes(targets: Sequence[Target], jobs: int) -> int:
    """How many processes to use: ``jobs`` at most, 0 meaning as many as there are processors, fewer for little code.

    Unless it is told a number, a hook of pre-commit has one: others may be running beside it.
    """
    limit = jobs or (1 if os.environ.get("PRE_COMMIT") else _processors())
    size = sum(target.size for target in targets)
    return max(1, min(limit, len(targets), size // BYTES_WORTH_A_PROCESS))


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _known(targets: Iterable[Target], cache: Cache) -> list[Outcome]:
    """What need not be found out again."""
    found = ((target.path, cache.find(target)) for target in targets)
    return [Outcome(path, findings) for path, findings in found if findings is not None]


def _outcomes(targets: Sequence[Target], jobs: int, task: Task) -> Iterable[Outcome]:
    if not targets:
        return ()
    from devlint.check.project import begin

    begin()
    count = processes(targets, jobs)
    if count == 1:
        return map(task, targets)
    from devlint.check import workers

    return workers.run(targets, count, task)


@lru_cache(maxsize=64)
def _selected(config: Config) -> tuple[type[Rule], ...]:
    return selected(config)


@lru_cache(maxsize=64)
def _asked(config: Config) -> frozenset[str]:
    return asked(config)


def _parse_error(failure: ParseFailure, data: bytes | str, filename: str, active: frozenset[str]) -> list[Finding]:
    rule = registry().get(PARSE_ERROR)
    if rule is None or PARSE_ERROR not in active:
        return []
    span = Span(failure.row, failure.column, failure.row, failure.column + 1)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    finding = Finding(
        PARSE_ERROR,
        rule.name,
        rule.severity,
        failure.message,
        filename,
        span,
        help=f"Python {version} cannot read this file, so nothing in it was checked; exclude it if that is intended",
    )
    from devlint.check.suppress import suppressions
    from devlint.source.text import decode

    text = decode(data)
    # Only what speaks of the whole file counts: lines mean little where the tokens end early.
    if isinstance(text, str):
        comments = suppressions(text, has_findings=False)
        comments.by_row = {None: comments.by_row.get(None, [])}
        return comments.apply([finding])
    return [finding]


def _depth(tree: ast.AST) -> int:
    """How deep a tree is; without recursion, for that is what it is asked for."""
    import ast

    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _one_line(error: BaseException) -> str:
    """An exception with the place in devlint where it was raised, which is what a bug report needs."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"
