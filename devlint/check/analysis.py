"""The analysis of one file: its content as code, the syntax tree, what the rules say of it, what comments silence."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from devlint.check.opened import KEPT, NOTEBOOK, POINTER, PYTHON, Opened, in_project, parse_errors
from devlint.check.outcome import AnalysisError
from devlint.check.project import models
from devlint.check.project.view import ProjectView
from devlint.check.suppressions import suppressions
from devlint.config.schema import Config
from devlint.device import Device
from devlint.finding import Finding, Place, Severity, Span, told
from devlint.flow import analyze
from devlint.immutable import immutable
from devlint.immutable import replace as exchanged
from devlint.rules.base import Rule
from devlint.rules.selection import active_rules, asked, graded, graded_codes
from devlint.rules.subsumption import subsumed, unasked
from devlint.rules.verdicts import verdicts
from devlint.sites.base import Site
from devlint.sites.observed import Observations
from devlint.source.context import in_context
from devlint.source.stack import recursing
from devlint.source.text import ParseFailure, decode
from devlint.source.tree import Source

TOO_DEEP = 1_000
"""Running out of stack on a tree of this depth is no bug of ours: Python 3.12 stops compiled code soon after it."""


def check_source(
    data: bytes | str, filename: str = "<string>", config: Config | None = None, project: ProjectView | None = None
) -> list[Finding]:
    """The findings in one file's content, in order. A failure of devlint itself raises :class:`AnalysisError`.

    Without the project around it, what the file imports is not known.
    """
    analyzer = Analyzer(filename, config or Config(), project)
    if isinstance(data, bytes):
        return analyzer.findings(data)
    # a text is code whatever encoding it declares, but for a notebook
    if not filename.endswith(NOTEBOOK):
        return analyzer.findings_in_code(data)
    return analyzer.findings(data.encode("utf-8", "surrogatepass"))


@immutable(frozen=True, slots=True)
class Analyzer:
    """How a file is analysed: under the name it goes by and its configuration, in the project around it."""

    filename: str
    config: Config
    project: ProjectView | None = None
    observations: Observations | None = None
    """What a run has seen of the file."""

    def findings(self, data: bytes) -> list[Finding]:
        """The findings in the content of the file, in order."""
        return told(self.considered(data))

    def considered(self, data: bytes) -> list[Finding]:
        """The findings in the content of the file, in order, and those that nobody asked for."""
        with _failures():
            opened = self.opened(data)
            return opened.located(self._considered_in_code(opened.code))

    def opened(self, data: bytes) -> Opened:
        """The code in the content of the file."""
        # what stands for a notebook, or for a file of Python, is neither
        if data.startswith(POINTER.encode()):
            return Opened(data)
        if not self.filename.endswith(NOTEBOOK):
            if not KEPT.search(data):
                return Opened(data)
            from devlint.check.exported import open_export

            return open_export(data)
        from devlint.check.notebook import open_notebook

        return open_notebook(data, self.filename, self.config)

    def findings_in_code(self, code: bytes | str) -> list[Finding]:
        """The findings in Python code, in order."""
        return told(self._considered_in_code(code))

    def _considered_in_code(self, code: bytes | str) -> list[Finding]:
        """What is found in Python code: it is parsed, analysed and judged, and comments silence some."""
        with _failures():
            rules = active_rules(self.filename, self.config)
            source = Source.parse(code, self.filename, None if self.project is None else self.project.tree)
            if isinstance(source, ParseFailure):
                return self._unparsed(source, code)
            found = self._judged(source, rules)
            if isinstance(found, ParseFailure):
                return self._unparsed(found, code)
            comments = suppressions(source.text, bool(found))
            wanted = asked(self.config) | graded_codes(self.config)
            audible = comments.apply(found)
            heard = [replace(finding, asked=finding.asked and finding.code not in wanted) for finding in found]
            kept = subsumed(sorted(heard, key=lambda finding: finding.sort_key), audible)
            kept = [unasked(finding, wanted) for finding in kept]
            kept += comments.unused(self.filename, frozenset(rule.code for rule in rules))
            kept.sort(key=lambda finding: finding.sort_key)
            withheld = [finding for finding in kept if finding.asked]
            return graded(in_context(source, told(kept)), self.config) + withheld

    def _judged(self, source: Source, rules: Sequence[type[Rule]]) -> list[Finding] | ParseFailure:
        """What the rules say, in no particular order and each once."""
        try:
            # An `elif` chain of 300 branches nests as deep.
            found = partial(rule_findings, source, rules, self.config, self.project)
            if self.observations is not None:
                found = partial(taught_findings, source, rules, self.config, self.project, self.observations)
            return recursing(found)
        except RecursionError:
            if _depth(source.tree) < TOO_DEEP:
                raise
            return ParseFailure("the code is nested too deeply", 1, 1)

    def _unparsed(self, failure: ParseFailure, code: bytes | str) -> list[Finding]:
        failure = in_project(failure, self.config)
        span = Span(failure.row, failure.column, failure.row, failure.column + 1)
        instead = "run devlint on one that can" if failure.newer else "exclude it if that is intended"
        unread = f"{PYTHON} cannot read this file, so nothing in it was checked; {instead}"
        text = decode(code)
        comments = text if isinstance(text, str) else ""
        if comments.startswith(POINTER):
            failure = exchanged(failure, message="a pointer of Git LFS stands in the place of the file")
            unread = "nothing in it was checked; `git lfs pull` fetches the file"
        return parse_errors([(failure, span)], unread, self.filename, self.config, comments)


def rule_findings(
    source: Source, rules: Sequence[type[Rule]], config: Config, project: ProjectView | None
) -> list[Finding]:
    """What rules say of the sites that are inferred from a file, in no particular order and each once."""
    return [finding for finding, _ in _found(source, rules, config, project)]


def taught_findings(
    source: Source, rules: Sequence[type[Rule]], config: Config, project: ProjectView | None, observations: Observations
) -> list[Finding]:
    """The same with what a run has seen of the file: what is found only then says on what it rests.

    What is not found any more was about what the code leaves open.
    """
    from devlint.flow.program.observations import rests_on_facts

    devices: set[tuple[str, Device]] = set()
    read = {(one.code, one.span): (one, site) for one, site in _found(source, rules, config, project, None, devices)}
    seen = _found(source, rules, config, project, observations, devices)
    taught = {(one.code, one.span): _resting(source, one, site) for one, site in seen}
    left = [one for key, (one, site) in read.items() if key not in taught and rests_on_facts(site)]
    return left + [_better(read[key][0] if key in read else None, one) for key, one in taught.items()]


def _better(read: Finding | None, taught: Finding) -> Finding:
    """What the code says by itself, unless a run makes more of it."""
    if read is None or taught.severity > read.severity or (read.asked and not taught.asked):
        return taught
    return read


def _found(
    source: Source,
    rules: Sequence[type[Rule]],
    config: Config,
    project: ProjectView | None,
    observations: Observations | None = None,
    devices: set[tuple[str, Device]] | None = None,
) -> list[tuple[Finding, Site]]:
    catalog = models.catalog(config)
    sites = analyze(source.tree, source.text, source.filename, project, catalog, observations, devices)
    home = None if project is None else partial(project.home, source)
    # what happens in another file is for that one to say
    own = sites if home is None else (site for site in sites if home(site.node) is source)
    return verdicts(source, rules, own, config.target_torch, home, config.latest_torch)


def _resting(source: Source, finding: Finding, site: Site) -> Finding:
    """A finding with where a run had what it speaks of; that another run has it there is probable at most."""
    places = (Place(source.span(step.node), step.label) for step in site.observed)
    related = tuple(dict.fromkeys((*finding.related, *places)))
    return replace(finding, severity=min(finding.severity, Severity.WARNING), related=related)


def _depth(tree: ast.AST) -> int:
    """How deep a tree is; without recursion, for that is what it is asked for."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


@contextmanager
def _failures() -> Iterator[None]:
    """Whatever fails is a failure of devlint, told in one line."""
    try:
        yield
    except AnalysisError:
        raise
    except Exception as error:
        raise AnalysisError(_one_line(error)) from error


def _one_line(error: BaseException) -> str:
    """An exception with the place in devlint where it was raised, which is what a bug report needs."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"
