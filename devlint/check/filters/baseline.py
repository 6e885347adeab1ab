"""The baseline: a file of findings that are known, so that a run reports only what came since.

An entry is the path, the code, the definition around, and the code of the finding without its layout; how often that
occurs is counted. Rows do not count, so that an entry survives whatever happens around it.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from devlint.config.messages import leads_out
from devlint.config.schema import Config, ConfigError
from devlint.finding import Finding
from devlint.rules.registry import registry
from devlint.rules.selection import PARSE_ERROR, active_rules
from devlint.source.output import write

VERSION = 1
_HEAD, _TAIL = f'{{"devlint-baseline": {VERSION}, "findings": [', "]}"
_WORDS = ("path", "code", "scope", "text")

Key = tuple[str, str, str, str]
"""Path, code, scope and text."""


@dataclass(slots=True)
class Judged:
    """What a run has looked at: files with their configurations, those that do not parse, the directories it was given.

    Paths are absolute. Of anything else the run says nothing.
    """

    configs: dict[str, Config] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    directories: tuple[str, ...] = ()

    @classmethod
    def of(cls, checked: Mapping[str, Config], findings: Iterable[Finding], paths: Iterable[str]) -> Judged:
        """The same of the files that a run has read, what it has found, and the paths that it was given."""
        configs = {os.path.abspath(path): config for path, config in checked.items()}
        unread = frozenset(os.path.abspath(found.filename) for found in findings if found.code == PARSE_ERROR)
        return cls(configs, unread, tuple(os.path.abspath(path) for path in paths if os.path.isdir(path)))

    def covers(self, path: str, code: str) -> bool:
        """Whether a finding of that file and rule would have been found, were it there."""
        config = self.configs.get(path)
        if config is None:
            # A file that is gone has no findings any more.
            inside = any(not leads_out(os.path.relpath(path, directory)) for directory in self.directories)
            return inside and not os.path.lexists(path)
        if code not in registry():
            return True
        if path in self.unread:  # of which nothing else is known
            return code == PARSE_ERROR
        return any(rule.code == code for rule in active_rules(path, config))


@dataclass(frozen=True)
class Baseline:
    """Known findings, and how often each occurs; ``file`` is the path as the user gave it."""

    file: str
    counts: Mapping[Key, int]

    @classmethod
    def read(cls, file: str, may_lack: bool = False) -> Baseline:
        """Read the file, or raise a ConfigError that says what is wrong with it."""
        try:
            if not stat.S_ISREG(os.stat(file).st_mode):
                raise ConfigError(f"{file}: the baseline is no regular file")
            with open(file, "rb") as stream:
                data = stream.read()
        except FileNotFoundError:
            if may_lack:
                return cls(file, {})
            raise ConfigError(f"{file}: there is no such baseline; `--update-baseline` makes one") from None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file}: {getattr(error, 'strerror', None) or error}") from error
        return cls(file, _counts(file, data))

    def new(self, findings: list[Finding]) -> list[Finding]:
        """The findings that are not known; of more occurrences than are known, the last ones."""
        seen: Counter[Key] = Counter()
        kept = []
        for finding in findings:
            key = self._key(finding)
            seen[key] += 1
            if seen[key] > self.counts.get(key, 0):
                kept.append(finding)
        return kept

    def stale(self, findings: Iterable[Finding], judged: Judged) -> int:
        """How many entries occur no more, or less often than they say."""
        found = Counter(map(self._key, findings))
        return sum(found[key] < count and self._judged(key, judged) for key, count in self.counts.items())

    def updated(self, findings: Iterable[Finding], judged: Judged) -> Baseline:
        """With what was found, in place of what is known of the same files and rules; of others it is kept."""
        kept = {key: count for key, count in self.counts.items() if not self._judged(key, judged)}
        return Baseline(self.file, {**kept, **Counter(map(self._key, findings))})

    def write(self) -> None:
        """Write the file, sorted, with a line for each entry; an OSError says why it could not be written."""
        lines = [_line(key, count) for key, count in sorted(self.counts.items())]
        write(self.file, "\n".join([_HEAD, ",\n".join(lines), _TAIL, ""]).replace("\n\n", "\n").encode())

    def _key(self, finding: Finding) -> Key:
        path = self._relative(os.path.abspath(finding.filename))
        context = finding.context
        return (path, finding.code, "", "") if context is None else (path, finding.code, context.scope, context.text)

    def _relative(self, path: str) -> str:
        """A path as it is written into the file: from its directory, the same on all systems."""
        try:
            return os.path.relpath(path, os.path.dirname(os.path.abspath(self.file))).replace(os.sep, "/")
        except ValueError:  # another drive of Windows
            return path.replace(os.sep, "/")

    def _judged(self, key: Key, judged: Judged) -> bool:
        path = os.path.join(os.path.dirname(os.path.abspath(self.file)), key[0])
        return judged.covers(os.path.normpath(path), key[1])


def _line(key: Key, count: int) -> str:
    entry: dict[str, object] = dict(zip(_WORDS, key, strict=True))
    if count > 1:
        entry["count"] = count
    try:
        json.dumps(entry, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a name of a file, or code, may hold what UTF-8 has no bytes for
        return json.dumps(entry)
    return json.dumps(entry, ensure_ascii=False)


def _counts(file: str, data: bytes) -> dict[Key, int]:
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        if b"\n<<<<<<< " in b"\n" + data:
            raise ConfigError(
                f"{file}: there are merge conflicts in it; take either side and run `--update-baseline`"
            ) from error
        raise ConfigError(f"{file}: not a baseline of devlint: not valid JSON") from error
    version = document.get("devlint-baseline") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise ConfigError(f"{file}: not a baseline of devlint")
    if version > VERSION:
        raise ConfigError(f"{file}: written by a newer devlint (format {version}, this one reads {VERSION})")
    entries = document.get("findings")
    if not isinstance(entries, list):
        raise ConfigError(f"{file}: not a baseline of devlint: it has no list of findings")
    counts: dict[Key, int] = {}
    for number, entry in enumerate(entries, 1):
        key, count = _entry(entry)
        if key is None:
            raise ConfigError(f"{file}: not a baseline of devlint: entry {number} is not understood")
        # A merge can leave the same entry twice.
        counts[key] = max(count, counts.get(key, 0))
    return counts


def _entry(entry: Any) -> tuple[Key | None, int]:
    if not isinstance(entry, dict) or not all(isinstance(entry.get(word), str) for word in _WORDS):
        return None, 0
    count = entry.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1 or "\0" in entry["path"]:
        return None, 0
    return (entry["path"], entry["code"], entry["scope"], entry["text"]), count
