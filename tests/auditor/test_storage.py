"""Records as files: whole or not at all, private, and read with suspicion."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import time
from dataclasses import replace

import pytest

from devlint.auditor.running import storage
from devlint.record import Record
from tests.report import records


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.mark.parametrize("name", records.every())
def test_a_record_comes_back_as_it_was(name: str, tmp_path) -> None:
    path = str(tmp_path / "record.json")
    record = replace(records.every()[name], sources={"/a.py": {3: "x = y"}})
    storage.write(record, path)
    assert storage.read(path) == record
    assert os.listdir(tmp_path) == ["record.json"]


NEITHER = "neither a record of devlint nor a trace of torch.profiler"
POINTER = "a pointer of Git LFS: `git lfs pull` fetches the file that it stands for"


def _measured(**measured: object) -> dict[str, object]:
    return {**records.MISSING_PIN, "measured": {"calls": 1, **measured}}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "No such file or directory"),
        ("", "it is empty"),
        (
            "version https://git-lfs.github.com/spec/v1\noid sha256:a\n",
            "a pointer of Git LFS: `git lfs pull` fetches the file that it stands for",
        ),
        (
            '{"format": 1, "processes": [',
            f"{NEITHER}: not valid JSON (it ends too early)",
        ),
        ("hello", f"{NEITHER}: not valid JSON"),
        (b"\xff\xfe", f"{NEITHER}: not valid JSON"),
        ("[" * 100_000, f"{NEITHER}: not valid JSON"),
        ("[]", NEITHER),
        ('[{"code": "DVL101"}]', NEITHER),
        ('{"format": 1}', NEITHER),
        ('{"format": "1", "processes": []}', NEITHER),
        ('{"format": true, "processes": []}', NEITHER),
        ('{"format": 2, "processes": []}', "written by a newer devlint (format 2, this one reads up to 1)"),
        ('{"format": 0, "processes": []}', NEITHER),
        (
            b'{"format": 1, "processes": [], "directory": "\xff"}',
            f"{NEITHER}: not valid JSON",
        ),
        (
            '{"format": 1, "processes": [], "findings": [{}]}',
            "not a record of devlint: Object missing required field `location` - at `$.findings[0]`",
        ),
        (
            '{"format": 1, "processes": [{"pid": "x"}]}',
            "not a record of devlint: Expected `int`, got `str` - at `$.processes[0].pid`",
        ),
        (
            '{"format": 1, "processes": [{"pid": 1, "role": "boss"}]}',
            "not a record of devlint: Invalid enum value 'boss' - at `$.processes[0].role`",
        ),
        (
            json.dumps({"format": 1, "processes": [], "findings": [_measured(calls="x")]}),
            "not a record of devlint: Expected `int`, got `str` - at `$.findings[0].measured.calls`",
        ),
        (
            json.dumps({"format": 1, "processes": [], "findings": [_measured(ranks=1)]}),
            "not a record of devlint: Expected `array`, got `int` - at `$.findings[0].measured.ranks`",
        ),
        (
            '{"format": 1, "processes": [{"pid": 1, "seconds": 1e308}]}',
            "not a record of devlint: a number in it is larger than any that a run can count",
        ),
        (
            '{"format": 1, "processes": [{"pid":-9223372036854775808}]}',
            "not a record of devlint: a number in it is larger than any that a run can count",
        ),
        (
            '{"format": 1, "processes": [], "sources": {"a.py": {"999999999999": "x"}}}',
            "not a record of devlint: no file has so many lines",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(content, line: str, tmp_path) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(storage.RecordError) as error:
        storage.read(str(path))
    assert str(error.value) == f"{path}: {line}"


def test_what_only_looks_like_a_large_number_is_read(tmp_path) -> None:
    record = Record(command=("x = 1e308", "[1e99", "12345678901234567890"), directory=":1e99")
    storage.write(record, str(tmp_path / "record.json"))
    assert storage.read(str(tmp_path / "record.json")) == record


def test_a_link_goes_on_leading_to_the_record(tmp_path) -> None:
    (tmp_path / "link.json").symlink_to("real.json")
    storage.write(records.cnn(), str(tmp_path / "link.json"))
    assert os.readlink(tmp_path / "link.json") == "real.json"
    assert storage.read(str(tmp_path / "real.json")) == records.cnn()


def test_a_directory_is_no_record(tmp_path) -> None:
    with pytest.raises(storage.RecordError, match="Is a directory"):
        storage.read(str(tmp_path))
    with pytest.raises(storage.RecordError, match="null"):
        storage.read("a\0b")


def test_a_write_that_fails_leaves_the_last_record(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "record.json")
    storage.write(Record(command=("first",)), path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        storage.write(Record(command=("second",)), path)
    assert storage.read(path).command == ("first",)
    assert os.listdir(tmp_path) == ["record.json"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_the_runs_are_private(tmp_path) -> None:
    run = storage.new_run()
    assert stat.S_IMODE(os.stat(run).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(storage.home()).st_mode) == 0o700
    # a directory that others may write to, or a link, may be somebody's trap
    os.chmod(storage.home(), 0o777)
    with pytest.raises(PermissionError):
        storage.new_run()
    os.rename(storage.home_path(), tmp_path / "elsewhere")
    os.chmod(tmp_path / "elsewhere", 0o700)
    os.symlink(tmp_path / "elsewhere", storage.home_path())
    with pytest.raises(PermissionError):
        storage.new_run()


def test_the_temporary_directory_is_not_settled_for_the_script(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.new_run()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("TMPDIR", str(other))
    assert tempfile.gettempdir() == str(other)


def test_old_runs_go_and_recent_ones_stay(tmp_path) -> None:
    now = time.time()
    for number in range(5):
        run = tmp_path / f"run-{number}"
        run.mkdir()
        (run / "record.json").write_text("{}")
        # 3 and 4 are of the last hour
        then = now - (4 - number) * 3000
        os.utime(run / "record.json", (then, then))
        os.utime(run, (then, then))
    (tmp_path / "other").mkdir()
    storage.prune(str(tmp_path), kept=1)
    assert sorted(os.listdir(tmp_path)) == ["other", "run-3", "run-4"]


def test_the_latest_run_is_the_whole_or_what_is_left_of_it() -> None:
    with pytest.raises(storage.RecordError, match="there is no record of a run yet"):
        storage.latest()
    first = storage.new_run()
    storage.write(Record(command=("first",)), os.path.join(first, storage.WHOLE))
    assert [record.command for record in storage.latest()] == [("first",)]
    time.sleep(0.01)
    killed = storage.new_run()
    assert [record.command for record in storage.latest()] == [("first",)]  # nothing is there yet
    for name in ("main", "child-7"):
        storage.write(Record(command=(name,)), os.path.join(killed, f"{name}.json"))
    assert [record.command for record in storage.latest()] == [("child-7",), ("main",)]
    with open(os.path.join(killed, "main.json"), "w") as stream:
        stream.write('{"form')
    assert [record.command for record in storage.latest()] == [("child-7",)]


def test_the_file_is_plain_json(tmp_path) -> None:
    path = tmp_path / "record.json"
    storage.write(records.cnn(), str(path))
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["format"] == 1
    assert document["processes"][0]["steps"]["train"] == records.cnn().processes[0].steps.train
