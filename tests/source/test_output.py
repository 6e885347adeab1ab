"""Writing a file as a whole or not at all."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from devlint.source.output import destination_problem, write


def test_content_is_replaced_and_permissions_stay(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    file.chmod(0o755)
    write(str(file), b"new\r\n", before=b"old")
    assert file.read_bytes() == b"new\r\n"
    assert file.stat().st_mode & 0o777 == 0o755
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_new_file_gets_the_usual_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change = os.umask
    before = change(0o027)
    # which is that of all threads: to ask for it is to change it for a moment
    monkeypatch.setattr(os, "umask", None)
    try:
        write(str(tmp_path / "new"), b"x")
    finally:
        change(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_a_link_goes_on_leading_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    file = tmp_path / "real" / "a.py"
    file.write_bytes(b"old")
    (tmp_path / "link.py").symlink_to(file)
    write(str(tmp_path / "link.py"), b"new")
    assert (tmp_path / "link.py").is_symlink()
    assert file.read_bytes() == b"new"


def test_any_name_that_the_file_system_takes(tmp_path: Path) -> None:
    file = tmp_path / ("\N{SNAKE}" * 63 + ".py")  # 255 bytes
    file.write_bytes(b"old")
    write(str(file), b"new")
    assert file.read_bytes() == b"new"
    assert os.listdir(tmp_path) == [file.name]


@pytest.mark.skipif(os.name != "posix", reason="permissions of another kind")
def test_nobody_else_reads_it_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret.py"
    file.write_bytes(b"old")
    file.chmod(0o600)
    modes = []

    def synced(_: int) -> None:
        modes.extend(each.stat().st_mode & 0o777 for each in tmp_path.iterdir())

    monkeypatch.setattr(os, "fsync", synced)
    write(str(file), b"new")
    assert modes == [0o600, 0o600]


class TestDestinations:
    """What is refused before the work that would be lost, or would lose something else."""

    @pytest.mark.parametrize("name", ["a.py", "a.ipynb", "a.pyi", "link"])
    def test_code_is_never_replaced(self, tree, name: str) -> None:
        tree({"a.py": "x", "a.ipynb": "{}", "a.pyi": "x", "out.py": "x"})
        Path("link").symlink_to("a.py")
        problem = destination_problem(name, ["a.py"])
        assert re.match(f"{name}: (holds code, which|is read by this very run, and) would", problem)
        assert Path("a.py").read_text() == "x"

    def test_what_is_read_is_not_replaced(self, tree) -> None:
        tree({"run.json": "{}", "other.json": "{}"})
        Path("link.json").symlink_to("run.json")
        for name in ("run.json", "./run.json", "link.json"):
            problem = destination_problem(name, ["nowhere", None, "run.json"])
            assert problem == f"{name}: is read by this very run, and would be lost"
        assert destination_problem("other.json", ["run.json", "\0"]) == ""
        assert destination_problem("new.py") == ""

    def test_what_could_not_be_written_is_known_before(self, tree) -> None:
        tree({"run.json": "{}", "here/x": ""})
        Path("loop").symlink_to("loop")
        Path("nowhere").symlink_to("gone/x")
        Path("run.json").chmod(0o444)
        for name, text in {
            "loop": "loop: Too many levels of symbolic links",
            "nowhere": f"{Path.cwd()}/gone: No such directory",
            "run.json": "run.json: Permission denied",
            "x" * 300: f"{'x' * 300}: File name too long",
            "run.json/x": "run.json/x: Not a directory",
        }.items():
            assert destination_problem(name) == text

    @pytest.mark.skipif(not hasattr(os, "ST_RDONLY"), reason="file systems of another kind")
    def test_a_folder_that_cannot_be_written_is_said_of_the_file(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        tree({"here/run.json": "{}"})
        monkeypatch.setattr(os, "access", lambda *_: False)
        for flags, reason in ((0, "Permission denied"), (os.ST_RDONLY, "Read-only file system")):
            monkeypatch.setattr(os, "statvfs", lambda _, flags=flags: SimpleNamespace(f_flag=flags))
            for name in ("new.json", "here/new.json", "here/run.json"):
                assert destination_problem(name) == f"{name}: {reason}"
            with pytest.raises(OSError, match=reason):
                write("here/run.json", b"new")


def test_another_name_of_the_file_keeps_the_old_content(tmp_path: Path) -> None:
    # what package managers share among all environments by such names must not change in one of them
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    os.link(file, tmp_path / "elsewhere.py")
    write(str(file), b"new", before=b"old")
    assert (file.read_bytes(), (tmp_path / "elsewhere.py").read_bytes()) == (b"new", b"old")


def test_what_was_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"edited by somebody")
    with pytest.raises(OSError, match="left alone"):
        write(str(file), b"new", before=b"old")
    assert file.read_bytes() == b"edited by somebody"
    assert os.listdir(tmp_path) == ["a.py"]


def test_nothing_but_a_file_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "nowhere" / "a.py"):
        with pytest.raises(OSError, match=r"directory|regular"):
            write(str(path), b"x")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    os.chown(file, 1234, 5678)
    file.chmod(0o2750)
    write(str(file), b"new")
    status = file.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (1234, 5678, 0o2750)


def test_attributes_stay_and_the_time_does_not(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    os.utime(file, (1, 1))
    try:
        os.setxattr(file, "user.note", b"mine")
    except (AttributeError, OSError):
        pytest.skip("no attributes here")
    write(str(file), b"new")
    assert os.getxattr(file, "user.note") == b"mine"
    assert file.stat().st_mtime > 1


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", lambda *_: os.stat(tmp_path / "nope"))
    with pytest.raises(OSError, match="No such file"):
        write(str(file), b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.py"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of another kind")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    file.chmod(0o444)
    with pytest.raises(PermissionError):
        write(str(file), b"new")
