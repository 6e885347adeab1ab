"""The page: what is in it, that it needs nothing else, and that no text of a record becomes markup."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings

from devlint.record import Record
from devlint.report import html as report
from devlint.report.html import library, page
from devlint.report.wording import size
from tests.report import pages, records
from tests.report.test_audit_any import PATIENCE, RECORDS

if importlib.util.find_spec("vl_convert") is None:
    pytest.skip("the extra `html` is not installed", allow_module_level=True)

VOID = {"meta", "link", "input", "br", "img", "hr"}
RECORDED = pages.every()
MEGABYTE = 2**20


class Page(HTMLParser):
    """The elements of a page, their attributes, and the text of those with an id or a class."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            key = dict(attrs).get("id") or dict(attrs).get("class") or tag
            self.texts.setdefault(key, []).append("")
            self._open.append((tag, key))

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag

    def handle_data(self, data: str) -> None:
        for _, key in self._open:
            self.texts[key][-1] += data

    def data(self) -> Any:
        """The data for the page's script, with the texts that it has by number."""
        found = json.loads(self.texts["data"][0])
        texts = found["texts"]
        found["rows"] = [[*row[:4], texts[row[4]], texts[row[5]], *row[6:]] for row in found["rows"]]
        found["problems"] = [[*(texts[text] for text in row[:5]), *row[5:]] for row in found["problems"]]
        return found


@pytest.fixture(scope="module", autouse=True)
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The plotting library is bundled once."""
    with pytest.MonkeyPatch.context() as patch:
        script = library.plotting_library()
        patch.setattr(report, "plotting_library", lambda cache=None: script)
        yield


@pytest.fixture(scope="module", params=RECORDED)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_page_needs_no_other_file_and_no_network(name: str) -> None:
    found = Page(page(RECORDED[name]))
    for tag, attributes in found.tags:
        assert not {"src", "srcset", "action", "background", "poster", "data"} & attributes.keys(), tag
        target = attributes.get("href") or ""
        if tag == "link":
            assert target.startswith("data:")
        else:  # a place in the page, or what a rule's documentation refers to, which only a click would open
            assert target == "" or target.startswith("#") or (tag == "a" and target.startswith("https://docs."))
    assert not re.search(r"@import|url\(", found.texts["style"][0])
    policy = next(fields["content"] for tag, fields in found.tags if fields.get("http-equiv"))
    assert (policy or "").startswith("default-src 'none'")


@pytest.mark.parametrize("text", [pages.HOSTILE])
def test_no_text_of_a_record_becomes_markup(text: str) -> None:
    whole = page(pages.hostile())
    found = Page(whole)
    assert sum(tag == "script" for tag, _ in found.tags) == 4
    assert not [tag for tag, _ in found.tags if tag == "img"]
    assert not [name for _, fields in found.tags for name in fields if name.startswith("on")]
    assert whole.count(text) == 0
    # and nothing of it is lost
    data = found.data()
    assert f"{text}.py" in [file for file, _ in data["files"]]
    assert ["".join(piece[1:] for piece in line) for _, (_, lines) in _chunks(data) for line in lines] == [text]
    assert text in data["problems"][0]
    assert text.split("`")[0] in found.texts["message"][0]
    assert any(text in line for line in found.texts["li"])


def _chunks(data: Any) -> list[tuple[str, Any]]:
    return [(name, chunk) for name, chunks in data["files"] for chunk in chunks]


def test_the_figures_are_those_of_the_record() -> None:
    """The table of the page, line by line, against the events."""
    data = Page(page(RECORDED["cnn"])).data()
    assert [table[2:] for table in data["tables"]] == [
        ["train", True],
        ["eval", True],
        ["setup", True],
        ["teardown", True],
    ]
    rows = [[data["files"][file][0], line, *rest] for table, file, line, *rest in data["rows"] if table == 0]
    assert rows == [
        ["train.py", 17, "D2H", "item, blocking", "", "loss.item()", 1, 4, 0.0051],
        ["train.py", 12, "H2D", "pageable, blocking", "", "images.to(device)", 1, 200_704, 0.0009],
        ["train.py", 12, "H2D", "pageable, blocking", "", "labels.to(device)", 1, 512, 0.00003],
        ["train.py", 18, "sync", "any", "", "(labels < 0).any()", 1, 0, 0.00005],
    ]
    sums = {line: figures for table, _, line, *figures in data["lines"] if table == 0}
    assert sums[12] == [2, 201_216, pytest.approx(0.00093)]
    (evaluated,) = [row for row in data["rows"] if row[0] == 1]
    assert evaluated[7:] == [1, 200_704, 0.001]  # 8 calls in 8 steps


def test_what_a_library_did_is_told_by_its_own_line() -> None:
    data = Page(page(RECORDED["framework"])).data()
    assert {row[6] for row in data["rows"]} == {f"self.work_{line}(inputs)" for line in range(2000, 2024)}
    assert data["rows"][0][5] == "transformers/trainer.py:2023"
    assert [file for file, _ in data["files"]] == ["finetune.py"]


def test_a_long_expression_is_cut_where_one_sees_it() -> None:
    record = RECORDED["cnn"]
    sources = {file: dict(lines) for file, lines in record.sources.items()}
    line = f"    loss.item({'x' * 90})"
    (file,) = (file for file, lines in sources.items() if "loss.item()" in lines.get(17, ""))
    sources[file][17] = line
    (process,) = record.processes
    long = tuple(
        replace(event, frame=replace(event.frame, column=4, end_column=len(line)))
        if event.frame is not None and event.frame.line == 17
        else event
        for event in process.events
    )
    data = Page(page(replace(record, sources=sources, processes=(replace(process, events=long),)))).data()
    (shown,) = {row[6] for row in data["rows"] if row[2] == 17}
    assert shown == f"loss.item({'x' * 67}..."


def test_of_several_ranks_the_least_and_the_greatest_figure_are_there() -> None:
    data = Page(page(RECORDED["distributed"])).data()
    item = next(row for row in data["rows"] if row[6] == "loss.item()")
    assert item[7:] == [[1, 2], 4, [0.0051, 0.01]]
    assert [title for title, _ in data["history"]["processes"]] == ["rank 0", "rank 1"]
    assert [len(steps) for _, steps in data["history"]["processes"]] == [40, 39]


def test_the_steps_are_those_of_the_record() -> None:
    ((_, steps),) = Page(page(RECORDED["cnn"])).data()["history"]["processes"]
    assert [step[:2] for step in steps] == [["train", number] for number in range(1, 41)]
    assert steps[0][2:4] == [pytest.approx(0.0121), 0.004]
    assert steps[0][4] == {
        "H2D": [2, 201_216, pytest.approx(0.00093)], "D2H": [1, 4, 0.0051], "sync": [1, 0, 0.00005],
    }  # fmt: skip


def test_the_cards_say_what_the_text_report_says() -> None:
    found = Page(page(RECORDED["cnn"]))
    keys = [fields["data-key"] for _, fields in found.tags if "data-key" in fields]
    shown = dict(zip(keys, found.texts["value"], strict=True))
    assert shown == {
        "found": "1", "steps": "40", "step": "12.3 ms", "waited": "33 %", "H2D": size(201_216), "D2H": "4 B",
        "waits": "4", "blocked": "6.08 ms", "memory": "3.00 GiB",
    }  # fmt: skip


def test_a_simulated_run_shows_no_time() -> None:
    text = page(RECORDED["simulated"])
    found = Page(text)
    assert not {"step", "waited", "blocked"} & {fields.get("data-key") for _, fields in found.tags}
    data = found.data()
    assert all(row[9] is None for row in data["rows"])
    assert all(step[2] is None and step[3] is None for _, steps in data["history"]["processes"] for step in steps)
    assert "simulated device" in found.texts["badge note"]


def test_what_a_run_died_of_comes_first_with_its_explanation() -> None:
    found = Page(page(RECORDED["mismatch"]))
    assert found.texts["message"][0].startswith("the run died when tensors on cuda:0 and cpu met in heads.0")
    assert found.texts["secondary"] == ["self.heads = [nn.Linear(64, 10) for _ in range(2)]"]
    assert found.texts["primary"] == ["self.heads[0](self.body(x).relu())"]
    assert "`heads` is a plain list".replace("`", "") in "".join(found.texts["dd"])
    assert len(found.texts["message"]) == 1


def test_a_finding_leads_to_the_words_of_its_rule() -> None:
    found = Page(page(RECORDED["cnn"]))
    assert ("a", {"class": "rule", "href": "#rule-DVL301"}) in found.tags
    assert "When it stays silent" in found.texts["rule-DVL301"][0]


def test_the_worst_comes_first() -> None:
    hint = {**records.MISSING_PIN, "severity": "info", "message": "a hint"}
    error = {**records.MISSING_PIN, "severity": "error", "message": "an error"}
    found = Page(page(replace(records.cnn(), findings=(hint, records.MISSING_PIN, error))))
    assert [text.split()[0] for text in found.texts["severity"]] == ["error", "warning", "info"]


def test_many_findings_are_all_there() -> None:
    found = Page(page(replace(records.cnn(), findings=(records.MISSING_PIN,) * 250)))
    assert len(found.texts["message"]) == 100
    further = found.data()["problems"]
    assert len(further) == 150
    assert further[0][0] == "DVL301"
    assert further[0][4:] == ["train.py", 7, 10]


def test_ten_thousand_lines_stay_under_five_megabytes() -> None:
    whole = pages.large_page()
    assert len(whole.encode()) < 5 * MEGABYTE
    data = Page(whole).data()
    assert len(data["rows"]) == pages.LINES
    assert sum(len(lines) for _, (_, lines) in _chunks(data)) == pages.LINES
    assert len(data["problems"]) == pages.LINES - 100
    ((_, steps),) = data["history"]["processes"]
    assert len(steps) == 2000


def test_code_is_not_moved_by_what_the_lexer_makes_of_it() -> None:
    odd = {1: 's = """', 2: "\x0c a\rb\tc", 3: '"""', 5: "é = '日本' # \u2028 x", 6: ""}
    record = replace(records.cnn(), sources={records.TRAIN: odd}, findings=())
    data = Page(page(record)).data()
    (chunks,) = [chunks for name, chunks in data["files"] if name == "train.py"]
    assert {
        start + index: "".join(piece[1:] for piece in line)
        for start, lines in chunks
        for index, line in enumerate(lines)
    } == odd


@settings(PATIENCE, max_examples=30)
@given(RECORDS)
def test_any_record_makes_a_page(record: Record) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "plotting_library", lambda cache=None: "")
        Page(page(record)).data()


def test_the_library_is_bundled_once(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import vl_convert

    first = library.plotting_library(str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda *_: pytest.fail("it is there already"))
    assert library.plotting_library(str(tmp_path)) == first
    assert "vegaEmbed" in first
