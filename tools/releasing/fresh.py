"""The README's test command on a fresh system: ``python -m tools.releasing.fresh FOLDER [options]``.

Root only, with debootstrap.  FOLDER becomes a system with nothing but Python, into which a clone of the last commit and
what the tests need are installed.  Then the tests run as another user, in a checkout that is read-only, without git,
compilers and network; what the install alone needed is gone.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MIRROR = "http://deb.debian.org/debian"
NOBODY = "65534"
SEARCHED = "/venv/bin:/usr/bin:/bin:/usr/sbin:/sbin"
NEEDED = ("debootstrap", "unshare", "setpriv", "mount", "ip", "chroot", "git")


def main(arguments: list[str]) -> None:
    """Make it, install into it, and end as its tests end."""
    parser = argparse.ArgumentParser(prog="python -m tools.releasing.fresh", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="where the system is made; it must not be there")
    parser.add_argument("--suite", default="bookworm", help="the release of Debian, which has one Python [bookworm]")
    parser.add_argument("--mirror", default=MIRROR, help=f"where Debian's packages are [{MIRROR}]")
    parser.add_argument(
        "--lend", action="append", default=[], type=Path, metavar="PATH", help="what pip needs to see of this machine"
    )
    given = parser.parse_args(arguments)
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        sys.exit(f"error: not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        sys.exit("error: only root can make a system")
    if given.folder.exists():
        sys.exit(f"error: {given.folder} exists")
    install, test = commands()
    system = given.folder.resolve()
    _run("debootstrap", "--variant=minbase", "--include=python3,python3-venv", given.suite, system, given.mirror)
    _name_itself(system)
    _run("git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), system / "src")
    for path in given.lend:
        _lend(path.absolute(), system)
    _inside(system, "python3 -m venv /venv", {})
    _inside(system, install, {key: value for key, value in os.environ.items() if key.startswith("PIP_")})
    for path in given.lend:
        _take_back(path.absolute(), system)
    sys.exit(_tested(system, test))


def commands() -> tuple[str, str]:
    """How the README installs devlint with all that its tests need, and how it runs them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^(python -m pip install -c .*) && (python -m pytest.*)$", text, re.MULTILINE)
    assert found is not None
    return found[1], found[2]


def confined(system: Path, command: str) -> list[str]:
    """A command in the system, without network and root's rights, in a checkout that is read-only.

    What is mounted is gone when it ends.
    """
    mounts = (
        "ip link set lo up"  # a machine without network still reaches itself
        ' && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev"'
        ' && mount --bind "$0/src" "$0/src" && mount -o remount,ro,bind "$0/src"'
    )
    user = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups sh -c"
    variables = f"env -i PATH={SEARCHED} HOME=/home/nobody LANG=C.UTF-8"
    script = f'{mounts} && exec {variables} chroot "$0" {user} "cd /src && $1"'
    return ["unshare", "--net", "--mount", "--pid", "--fork", "sh", "-c", script, str(system), command]


def _tested(system: Path, test: str) -> int:
    home = system / "home" / "nobody"
    home.mkdir()
    os.chown(home, int(NOBODY), int(NOBODY))
    for command in ("git --version", "cc --version"):
        if subprocess.run(confined(system, command), capture_output=True).returncode == 0:
            sys.exit(f"error: this system is not fresh: `{command}` works")
    command = f"{test} -p no:cacheprovider"  # it is kept in the checkout
    print("+", command, flush=True)
    return subprocess.run(confined(system, command)).returncode


def _name_itself(system: Path) -> None:
    """Where it and ``localhost`` are, as Debian's installer writes it: ranks find each other by these names."""
    hosts = system / "etc" / "hosts"
    written = hosts.read_text(encoding="utf-8") if hosts.exists() else "127.0.0.1\tlocalhost\n::1\tlocalhost\n"
    hosts.write_text(f"{written}127.0.1.1\t{platform.node()}\n", encoding="utf-8")


def _inside(system: Path, command: str, variables: dict[str, str]) -> None:
    words = [f"{key}={value}" for key, value in variables.items()]
    _run("env", "-i", f"PATH={SEARCHED}", "HOME=/root", *words, "chroot", system, "sh", "-c", f"cd /src && {command}")


def _lend(path: Path, system: Path) -> None:
    target = system / path.relative_to(path.anchor)
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):  # debootstrap leaves links to certificates
        _take_back(path, system)
    if path.is_dir():
        shutil.copytree(path, target)
    else:
        shutil.copy(path, target)


def _take_back(path: Path, system: Path) -> None:
    target = system / path.relative_to(path.anchor)
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink()


def _run(*command: str | Path) -> None:
    print("+", *command, flush=True)
    done = subprocess.run([*map(str, command)], check=False)
    if done.returncode:
        sys.exit(f"error: this command failed with {done.returncode}")


if __name__ == "__main__":
    main(sys.argv[1:])
