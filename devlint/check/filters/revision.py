"""What has changed since a revision, according to git: which files, and which of their rows."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from devlint.config.messages import leads_out
from devlint.config.schema import ConfigError
from devlint.finding import Finding

_SUBMODULE = b"160000"
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))
# What would change the form of the answers.
_FOREIGN = ("GIT_DIFF_OPTS", "GIT_EXTERNAL_DIFF", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS",
            "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS")  # fmt: skip
_DIFF = ("diff", "--unified=0", "--inter-hunk-context=0", "--no-color", "--no-ext-diff", "--no-textconv", "--text",
         "--find-renames", "--no-prefix", "--no-relative", "--ignore-submodules", "--diff-algorithm=default",
         "--output-indicator-new=+")  # fmt: skip


@dataclass(slots=True)
class _Rows:
    """The rows of one file that are new, and those after which others were taken out."""

    added: set[int] = field(default_factory=set)
    gaps: set[int] = field(default_factory=set)

    def meet(self, first: int, last: int) -> bool:
        """Whether anything changed between two rows, which are included."""
        return not (self.added.isdisjoint(range(first, last + 1)) and self.gaps.isdisjoint(range(first, last)))


@dataclass(frozen=True)
class Since:
    """The changes of a working tree since a revision, or since the work left the line that leads to it."""

    top: str
    tracked: frozenset[str]
    submodules: frozenset[str]
    changed: dict[str, _Rows]

    def touched(self, path: str) -> bool:
        """Whether a file has changed; one that git does not track is new altogether."""
        name = self._name(path)
        if name in self.tracked:
            return name in self.changed
        return self.submodules.isdisjoint(str(above) for above in PurePosixPath(name).parents)

    def concerned(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings of files that have changed whose statement has, or one of the places that explain them."""
        return [finding for finding in findings if self._concerns(finding)]

    def _concerns(self, finding: Finding) -> bool:
        name = self._name(finding.filename)
        rows = self.changed.get(name)
        if name not in self.tracked or rows is None or finding.context is None:
            return self.touched(finding.filename)
        first, last = finding.context.rows
        whole = replace(finding.span, row=first, end_row=last)
        spans = [whole, *(place.span for place in finding.related if place.filename in ("", finding.filename))]
        if finding.span.cell:
            from devlint.source.notebook.cells import in_file

            spans = [in_file(finding.filename, span) for span in spans]
        return any(rows.meet(span.row, span.end_row) for span in spans)

    def _name(self, path: str) -> str:
        """A path as git names it: from the top of the repository."""
        real = os.path.realpath(path)
        name = os.path.relpath(real, self.top)
        if leads_out(name) or os.path.isabs(name):
            raise ConfigError(f"--since: {path} is not in the git repository {self.top}")
        return name.replace(os.sep, "/")


def since(revision: str, directory: str, named: Iterable[str] = ()) -> Since:
    """Ask git what changed since a revision; ``named`` are files that are to be checked, whatever they are called.

    The revision is the commit where the history that leads to it and the current one parted, so that what others did
    on a branch meanwhile is no change. Whatever cannot be had from git is a ConfigError.
    """
    if "GIT_DIR" in os.environ:
        directory = os.curdir  # a hook's variable, which git takes from where it was started
    while not os.path.isdir(directory):  # of a path that does not exist, which is said of it later
        directory = os.path.dirname(directory)
    top = os.path.realpath(os.fsdecode(_git(directory, "rev-parse", "--show-toplevel").removesuffix(b"\n")))
    commit = _commit(revision, directory)
    tracked, submodules = _files(top)
    python = [":(top)*.py", ":(top)*.ipynb", *(f":(top,literal){name}" for name in _inside(named, top))]
    changed = dict(_changes(_git(top, *_DIFF, commit, "--", *python)))
    return Since(top, frozenset(tracked), frozenset(submodules), changed)


def _inside(paths: Iterable[str], top: str) -> Iterator[str]:
    for path in paths:
        name = os.path.relpath(os.path.realpath(path), top)
        if not leads_out(name) and not name.endswith((".py", ".ipynb")) and os.path.isfile(path):
            yield name.replace(os.sep, "/")


def _commit(revision: str, directory: str) -> str:
    """The commit to compare with."""
    unknown = ConfigError(f"--since: there is no revision {revision!r} in this git repository")
    # What begins like an option must not become one.
    if not revision or revision.startswith("-") or "\0" in revision:
        raise unknown
    try:
        name = _git(directory, "rev-parse", "--verify", "--quiet", revision).decode().strip()
        if not re.fullmatch(r"[0-9a-f]{40,64}", name):
            raise unknown
        commit = _git(directory, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    except ConfigError:
        if _git(directory, "rev-parse", "--is-shallow-repository").strip() == b"true":
            raise ConfigError(f"{unknown}, of which only a part was cloned: `git fetch` it") from None
        raise unknown from None
    try:
        return _git(directory, "merge-base", commit, "HEAD").decode().split()[0]
    except (ConfigError, IndexError):
        # A clone that is too shallow, or a history of its own: then the revision itself, so that nothing is missed.
        return commit


def _files(top: str) -> tuple[set[str], set[str]]:
    """The files that git tracks, and its submodules."""
    tracked: set[str] = set()
    submodules: set[str] = set()
    for entry in _git(top, "ls-files", "--stage", "-z", "--full-name").split(b"\0"):
        mode, _, name = entry.partition(b"\t")
        (submodules if mode.startswith(_SUBMODULE) else tracked).add(os.fsdecode(name))
    return tracked, submodules


def _changes(diff: bytes) -> Iterator[tuple[str, _Rows]]:
    """The changed rows of each file of a diff without context."""
    lines = iter(diff.split(b"\n"))
    rows = _Rows()
    for line in lines:
        if line.startswith(b"+++ "):
            rows = _Rows()
            yield _unquoted(line[4:].removesuffix(b"\t")), rows
        elif match := _HUNK.match(line):
            start = int(match[2])
            removed = 1 if match[1] is None else int(match[1])
            added = 1 if match[3] is None else int(match[3])
            rows.added.update(range(start, start + added))
            if not added:
                rows.gaps.add(start)
            # the rows of a hunk, which can look like anything
            while removed + added > 0 and (inside := next(lines, None)) is not None:
                removed -= inside[:1] in b"+-"


def _unquoted(name: bytes) -> str:
    """The name of a file in a diff: git quotes it where it holds what is not plain."""
    if name.startswith(b'"') and name.endswith(b'"'):
        name = _ESCAPE.sub(lambda match: bytes([_ESCAPES.get(match[1][0]) or int(match[1], 8)]), name[1:-1])
    return os.fsdecode(name)


def _git(directory: str, *arguments: str) -> bytes:
    """What git answers; what it complains of is a ConfigError, in one line."""
    environment = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
    command = ["git", "--no-optional-locks", "--no-pager", *arguments]
    try:
        done = subprocess.run(
            command, cwd=directory, env={**environment, "LC_ALL": "C"}, stdin=subprocess.DEVNULL, capture_output=True
        )
    except FileNotFoundError:
        raise ConfigError("--since: git is not installed") from None
    except OSError as error:
        raise ConfigError(f"--since: git cannot be run: {error.strerror}") from error
    if done.returncode:
        first = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise ConfigError(f"--since: {first.removeprefix('fatal: ') or 'git failed'}")
    return done.stdout
