"""The public repositories whose findings are read, each at one commit, and how their files are laid out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class MirrorError(Exception):
    """A repository cannot be read; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as ``owner/name``, and the commit that was read."""

    name: str
    commit: str

    @property
    def version(self) -> str:
        """The commit as it is told."""
        return self.commit[:12]

    def git_directory(self, mirror: Path) -> Path:
        """Where a mirror keeps its bare clone."""
        return mirror / self.name.replace("/", "+") / "repo"


REPOSITORIES = (
    Repository("allenai/allennlp", "80fb6061e568cb9d6ab5d45b661e86eb61b92c82"),
    Repository("cornellius-gp/gpytorch", "7c4ec80f0f05cf530348a8a8972d67a11dd26ed2"),
    Repository("huggingface/diffusers", "58eb52c0803ea9af3abec60841c2a093bdf1f951"),
    Repository("huggingface/pytorch-image-models", "aa4b5850c1543fa488abf260f18390eda46cf85d"),
    Repository("karpathy/nanoGPT", "3adf61e154c3fe3fca428ad6bc3818b27a3b8291"),
    Repository("kornia/kornia", "b4f5a78a13891c7ac4c1cd9695941380273e981d"),
    Repository("lucidrains/denoising-diffusion-pytorch", "faed4db28e724735323fa91c70aa9b28a6e1cbac"),
    Repository("lucidrains/vit-pytorch", "69d24fe9e3024c0d4b02761123b8583a24ebed1e"),
    Repository("milesial/Pytorch-UNet", "21d7850f2af30a9695bbeea75f3136aa538cfc4a"),
    Repository("pyg-team/pytorch_geometric", "5c6461b2305ad068a6d61165b3c55852a11aaa41"),
    Repository("pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8"),
    Repository("ultralytics/yolov3", "97b87b1347d6d927d27227d2225140da38e4d308"),
    Repository("ultralytics/yolov5", "5081342f04fb287fc2e5f2b5a4e06752b7937b1c"),
)


def unpack(repository: Repository, mirror: Path, folder: Path, suffixes: tuple[str, ...] = (".py",)) -> None:
    """Write the files of ``repository`` with these suffixes into ``folder``; a clone that lacks others will do."""
    source = repository.git_directory(mirror)
    if not source.is_dir():
        clone = f"git clone --bare https://github.com/{repository.name} {source}"
        raise MirrorError(f"{repository.name} is not in the mirror; `{clone}` puts it there")
    for path, content in _contents(source, _files(source, repository.commit, suffixes)):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _files(directory: Path, commit: str, suffixes: tuple[str, ...]) -> list[tuple[str, bytes]]:
    """The files of a commit that end so, links left out, each with the name of its blob."""
    found = []
    for entry in _git(directory, "ls-tree", "-r", "-z", commit).split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if about.startswith(b"100") and path.decode().endswith(suffixes):
            found.append((path.decode(), about.split()[2]))
    return found


def _contents(directory: Path, files: list[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """The bytes of the files, all asked for at once: a line with the size, the bytes, the end of a line, and again."""
    answer = _git(directory, "cat-file", "--batch", given=b"".join(blob + b"\n" for _, blob in files))
    at = 0
    for path, _ in files:
        end = answer.index(b"\n", at)
        about = answer[at:end].split()
        if about[1] != b"blob":
            if path.endswith(".py"):
                raise MirrorError(f"{directory} lacks {path}")
            # a snapshot may leave out its largest files, logs and data
            at = end + 1
            continue
        at = end + 1 + int(about[2]) + 1
        yield path, answer[end + 1 : at - 1]


def _git(directory: Path, *arguments: str, given: bytes | None = None) -> bytes:
    done = subprocess.run(["git", f"--git-dir={directory}", *arguments], input=given, capture_output=True)
    if done.returncode:
        raise MirrorError(f"{directory}: git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def first_run(name: str, folder: Path) -> list[dict[str, Any]]:
    """What this devlint, and not one that is installed, tells of a repository by default, each with its path in it."""
    command = [sys.executable, "-m", "devlint", "check", "--no-cache", "--output-format", "json", "."]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", env=environment)
    if done.returncode not in (0, 1):
        raise MirrorError(f"devlint exited with {done.returncode} on {name}: {done.stderr.strip()}")
    entries: list[dict[str, Any]] = json.loads(done.stdout)
    for entry in entries:
        entry["filename"] = Path(entry["filename"]).resolve().relative_to(folder).as_posix()
    return entries
