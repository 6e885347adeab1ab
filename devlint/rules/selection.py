"""Which rules run: codes, prefixes, names and ``ALL`` become sets of rules, the most specific selector winning."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.config.messages import did_you_mean, leads_out
from devlint.config.schema import Config, RuleLayer
from devlint.rules.registry import registry

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from devlint.finding import Finding, Severity
    from devlint.rules.base import Rule

PARSE_ERROR = "DVL900"
UNUSED_SUPPRESSION = "DVL901"


class UnknownSelectorError(ValueError):
    """No rule has this code, prefix or name."""


def codes_of(selector: str) -> frozenset[str]:
    """The codes that a selector means: ``ALL``, a code, the beginning of one, or a rule's name."""
    known = registry()
    wanted = selector.strip()
    upper = wanted.upper()
    if upper == "ALL":
        return frozenset(known)
    codes = {code for code in known if upper.startswith("DVL") and code.startswith(upper)}
    codes |= {code for code, rule in known.items() if rule.name == wanted.lower()}
    if not codes:
        names = [rule.name for rule in known.values()]
        hint = did_you_mean(upper, list(known)) or did_you_mean(wanted.lower(), names)
        raise UnknownSelectorError(f"unknown rule {selector!r}{hint}")
    return frozenset(codes)


def validate(config: Config) -> None:
    """Raise an UnknownSelectorError if one of the selectors that a configuration names means no rule."""
    check_selectors(config.selectors, set())


def check_selectors(selectors: Iterable[str], known: set[str]) -> None:
    """Raise an UnknownSelectorError if one of them means no rule; what is known to mean one is not looked up."""
    for selector in selectors:
        if selector not in known:
            codes_of(selector)
            known.add(selector)


@lru_cache(maxsize=64)
def selected(config: Config) -> tuple[type[Rule], ...]:
    """The rules that a configuration runs, by code."""
    known = registry()
    # A file that cannot be read is reported under any choice of rules, unless that very report is ignored.
    chosen = _chosen(config, {code for code, rule in known.items() if rule.default}, {PARSE_ERROR} & known.keys())
    return tuple(known[code] for code in sorted(chosen))


def active_rules(filename: str, config: Config) -> tuple[type[Rule], ...]:
    """The rules that judge a file."""
    ignored = ignored_in(os.path.abspath(filename), config) if config.per_file_ignores else frozenset()
    return tuple(rule for rule in selected(config) if rule.code not in ignored)


@lru_cache(maxsize=64)
def asked(config: Config) -> frozenset[str]:
    """The codes that a configuration selects itself, and does not only leave selected."""
    return frozenset(_chosen(config, set(), set()))


def _chosen(config: Config, default: set[str], always: set[str]) -> set[str]:
    """The codes that the layers leave of the ``default`` ones, or of those that run ``always``, and add to them."""
    for layer in config.rule_layers:
        default = default if layer.select is None else set(always)
        for code, wanted in _verdicts(layer).items():
            (default.add if wanted else default.discard)(code)
    return default


def ignored_in(path: str, config: Config) -> frozenset[str]:
    """The codes that ``per-file-ignores`` drops in a file, given by its absolute path."""
    dropped: set[str] = set()
    for pattern, selectors in config.per_file_ignores:
        if matches(pattern, path, config.root):
            dropped |= union(selectors)
    return frozenset(dropped)


def graded(findings: list[Finding], config: Config) -> list[Finding]:
    """The findings with the severity that the configuration gives to their rules."""
    if not config.severity:
        return findings
    wanted = _severities(config.severity)
    return [
        replace(finding, severity=wanted[finding.code], unproven=None) if finding.code in wanted else finding
        for finding in findings
    ]


def graded_codes(config: Config) -> frozenset[str]:
    """The codes to which a configuration gives a severity."""
    return frozenset(_severities(config.severity))


@lru_cache(maxsize=64)
def _severities(table: tuple[tuple[str, Severity], ...]) -> Mapping[str, Severity]:
    ranked = sorted(table, key=lambda entry: _specificity(entry[0]))
    return {code: severity for selector, severity in ranked for code in codes_of(selector)}


def union(selectors: Iterable[str]) -> frozenset[str]:
    """The codes that any of the selectors means."""
    return frozenset[str]().union(*map(codes_of, selectors))


def matches(pattern: str, path: str, root: str) -> bool:
    """Whether a gitignore-like pattern, ``!`` in front for the opposite, means a file below ``root``."""
    relative = os.path.relpath(path, root or None)
    if leads_out(relative):
        return False
    if pattern.startswith("!"):
        return not _compiled(pattern[1:]).match_file(relative)
    return bool(_compiled(pattern).match_file(relative))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])


def _verdicts(layer: RuleLayer) -> dict[str, bool]:
    """What one layer says about each rule that it mentions: the most specific selector wins, `ignore` at a tie."""
    mentions = [(selector, True) for selector in (*(layer.select or ()), *layer.extend_select)]
    mentions += [(selector, False) for selector in layer.ignore]
    mentions.sort(key=lambda mention: (_specificity(mention[0]), not mention[1]))
    return {code: wanted for selector, wanted in mentions for code in codes_of(selector)}


def _specificity(selector: str) -> int:
    upper = selector.strip().upper()
    if upper == "ALL":
        return 0
    # A name is a whole rule, as a full code is.
    is_code = upper == "DVL" or (upper.startswith("DVL") and upper[3:].isdigit())
    return len(upper) if is_code else len(PARSE_ERROR)
