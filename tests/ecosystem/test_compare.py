"""The comparison itself: no wheel, no network, no devlint."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.ecosystem import reported, wheels
from tests.ecosystem.compare import HERE, Reviewed, compare, count, load, store
from tests.ecosystem.errors import EcosystemError
from tests.ecosystem.reported import Identity, excerpt, read_json, source_lines
from tests.ecosystem.wheels import WHEELS, Wheel, chosen_wheels, unpacked

if TYPE_CHECKING:
    from pathlib import Path

WHEEL = Wheel("toy", "1.0", "0" * 64)
LOADER, MOVE, OTHER = (
    Identity("toy/a.py", 3, "DVL301"),
    Identity("toy/a.py", 9, "DVL201"),
    Identity("toy/b.py", 1, "DVL201"),
)


def reviewed(*findings: Identity) -> Reviewed:
    return Reviewed("1.0", count(findings), Counter(findings))


def test_no_change_is_no_difference() -> None:
    assert not compare(reviewed(LOADER, MOVE), [MOVE, LOADER])


def test_what_came_and_what_went_is_listed() -> None:
    difference = compare(reviewed(LOADER, MOVE), [MOVE, OTHER])
    assert difference.counts == (("DVL201", 1, 2), ("DVL301", 1, 0))
    assert difference.added == (OTHER,)
    assert difference.lost == (LOADER,)


def test_equal_counts_do_not_hide_an_exchange() -> None:
    difference = compare(reviewed(MOVE), [OTHER])
    assert difference
    assert not difference.counts


def test_two_findings_of_a_rule_on_one_line_are_two() -> None:
    assert compare(reviewed(MOVE, MOVE), [MOVE]).lost == (MOVE,)


def test_counts_that_contradict_the_list_are_a_difference() -> None:
    assert compare(Reviewed("1.0", Counter({"DVL201": 2}), Counter([MOVE])), [MOVE])


def test_what_is_stored_is_what_is_loaded(tmp_path: Path) -> None:
    assert load(WHEEL, tmp_path) is None
    store(WHEEL, [OTHER, MOVE, LOADER, MOVE], tmp_path)
    store(Wheel("another", "2", ""), [], tmp_path)
    again = load(WHEEL, tmp_path)
    assert again == reviewed(LOADER, MOVE, OTHER, MOVE)
    assert (tmp_path / "findings" / "toy.txt").read_text().splitlines()[0] == "toy/a.py:3 DVL301"


def test_a_spoilt_list_is_refused_in_one_line(tmp_path: Path) -> None:
    store(WHEEL, [MOVE], tmp_path)
    (tmp_path / "findings" / "toy.txt").write_text("<<<<<<< HEAD\n")
    with pytest.raises(EcosystemError, match="not a reviewed finding"):
        load(WHEEL, tmp_path)


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_the_reviewed_files_agree_with_each_other_and_with_the_pins(wheel: Wheel) -> None:
    review = load(wheel)
    if review is None:
        assert not (HERE / "findings" / f"{wheel.name}.txt").exists()
        pytest.skip("not reviewed yet")
    assert review.version == wheel.version
    assert review.counts == count(review.findings.elements())


def entry(file: Path, row: int) -> dict[str, object]:
    place = {"location": {"row": 1, "column": 1}, "label": "made on the CPU here"}
    return {
        "code": "DVL101",
        "name": "device-mismatch",
        "severity": "error",
        "message": "two devices",
        "filename": str(file),
        "location": {"row": row, "column": 1},
        "end_location": {"row": row, "column": 5},
        "related": [place],
    }


def test_devlints_json_is_read_with_paths_inside_the_wheel(tmp_path: Path) -> None:
    file = tmp_path / "toy" / "a.py"
    file.parent.mkdir()
    file.write_bytes(b"t = torch.zeros(3)\r\n\x0c\r\n    u + t\r\n")
    first, second = read_json(json.dumps([entry(file, 3), entry(file, 1)]), tmp_path)
    assert first.identity < second.identity == ("toy/a.py", 3, "DVL101")
    assert second.line == "u + t"
    shown = excerpt(second, tmp_path, context=1)
    assert shown.startswith("toy/a.py:3 DVL101 error: two devices\n")
    assert "  >    3 |     u + t\n" in shown
    assert "  made on the CPU here (line 1): t = torch.zeros(3)\n" in shown


@pytest.mark.parametrize("text", ["", '{"error": 1}', '[{"code": "DVL101"}]'])
def test_another_json_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(EcosystemError, match="not what was agreed"):
        read_json(text, tmp_path)


def test_nothing_found_is_an_empty_list(tmp_path: Path) -> None:
    assert read_json("[]", tmp_path) == []


def test_lines_are_counted_as_python_counts_them(tmp_path: Path) -> None:
    file = tmp_path / "latin.py"
    file.write_bytes("# coding: latin-1\na = 'é\x0b'\x0c\rb = 1".encode("latin-1"))
    assert source_lines(file) == ("# coding: latin-1", "a = 'é\x0b'\x0c", "b = 1")
    assert reported.source_line(file, 4) == ""


def packed(folder: Path) -> Wheel:
    file = folder / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("toy/a.py", "a = 1\n")
    return Wheel("toy", "1.0", hashlib.sha256(file.read_bytes()).hexdigest())


def test_a_wheel_in_the_cache_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = unpacked(packed(tmp_path), tmp_path)
    assert (folder / "toy" / "a.py").read_text() == "a = 1\n"
    monkeypatch.setattr(wheels, "_download", lambda *_: pytest.fail("it is there already"))
    assert unpacked(Wheel("toy", "1.0", folder.name.rpartition("-")[2]), tmp_path) == folder


def test_a_wheel_with_another_hash_is_not_unpacked(tmp_path: Path) -> None:
    packed(tmp_path)
    with pytest.raises(EcosystemError, match="is pinned"):
        unpacked(WHEEL, tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_an_unknown_wheel_is_named() -> None:
    with pytest.raises(EcosystemError, match=r"no such wheel: tim \(there are timm"):
        chosen_wheels(["tim"])
    assert [wheel.name for wheel in chosen_wheels(["lightning", "timm"])] == ["timm", "lightning"]
