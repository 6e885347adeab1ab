"""What tools/releasing/fresh.py runs, and what it says where it cannot."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import devlint
from tools.releasing import fresh

ROOT = Path(devlint.__file__).parents[1]
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="debootstrap makes Linux systems")


def test_it_runs_what_the_readme_says() -> None:
    install, test = fresh.commands()
    assert f"\n{install} && {test}\n" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert install.startswith("python -m pip install ")
    assert test.startswith("python -m pytest")


def test_what_it_lacks_is_said_in_a_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.releasing.fresh", str(tmp_path / "system")],
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: not installed: debootstrap, ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "system").exists()


def test_what_is_lent_is_taken_back(tmp_path: Path) -> None:
    file, folder, system = tmp_path / "here" / "ca.crt", tmp_path / "wheels", tmp_path / "system"
    file.parent.mkdir()
    folder.mkdir()
    file.write_text("certificate")
    (folder / "a.whl").write_text("wheel")
    target = system / file.relative_to(file.anchor)
    target.parent.mkdir(parents=True)
    target.symlink_to(file)  # as debootstrap leaves it: out of the system
    for path in (file, folder):
        fresh._lend(path, system)
    assert not target.is_symlink()
    inside = {path.name for path in system.rglob("*") if path.is_file()}
    assert inside == {"ca.crt", "a.whl"}
    for path in (file, folder):
        fresh._take_back(path, system)
    assert not [path for path in system.rglob("*") if path.is_file()]
    assert file.exists()
    assert (folder / "a.whl").exists()


def test_it_finds_itself_by_name(tmp_path: Path) -> None:
    hosts = tmp_path / "etc" / "hosts"
    hosts.parent.mkdir()
    own = f"127.0.1.1\t{platform.node()}"
    fresh._name_itself(tmp_path)
    assert hosts.read_text(encoding="utf-8").splitlines() == ["127.0.0.1\tlocalhost", "::1\tlocalhost", own]
    hosts.write_text("what is there\n", encoding="utf-8")
    fresh._name_itself(tmp_path)
    assert hosts.read_text(encoding="utf-8").splitlines() == ["what is there", own]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can")
def test_a_command_has_neither_network_nor_rights_there_nor_a_checkout_that_can_be_written(tmp_path: Path) -> None:
    """In a system that consists of this one's programs."""
    system = tmp_path / "system"
    for name in ("proc", "dev", "src", "home/nobody"):
        (system / name).mkdir(parents=True)
    parts = [part for part in ("usr", "bin", "sbin", "lib", "lib64", "etc") if Path("/", part).exists()]
    for part in parts:
        (system / part).mkdir()
    mounts = " && ".join(f"mount --bind /{part} {system}/{part}" for part in parts)
    tmp_path.parent.chmod(0o755)
    (system / "src").chmod(0o777)
    command = "id -u; cat /proc/net/dev | grep -c :; touch here && echo written; pwd"
    words = fresh.confined(system, command)
    words[words.index("-c") + 1] = f"{mounts} && {words[words.index('-c') + 1]}"
    done = subprocess.run(words, capture_output=True, text=True)
    if "Operation not permitted" in done.stderr or "ermission denied" in done.stderr:
        pytest.skip("this root may not mount")
    assert done.stdout.split() == [fresh.NOBODY, "1", "/src"], done.stderr
    assert not (system / "src" / "here").exists()
    assert not any((system / "proc").iterdir()), "nothing stays mounted"
