"""The page in a browser: it draws itself without a complaint, and what it shows is what the record says."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devlint.record import Record
from devlint.report.audit.code import Code
from devlint.report.audit.layout import figures
from devlint.report.audit.table import table
from devlint.report.html import page
from devlint.report.wording import between, duration, number, size
from tests.report import pages
from tests.report.browser import browser, complaints, open_page, why_not

if importlib.util.find_spec("vl_convert") is None or importlib.util.find_spec("selenium") is None:
    pytest.skip("needs the extras `html` and `test`", allow_module_level=True)
if why_not():
    pytest.skip(why_not(), allow_module_level=True)

RECORDED = pages.every()
_HOTTEST = """
const heat = (cell) => parseFloat(cell.style.getPropertyValue("--heat") || 0);
const hottest = (kind) => [...document.querySelectorAll(`#code td.${kind}`)].sort((a, b) => heat(b) - heat(a))[0];
return ["bytes", "blocked"].map((kind) => hottest(kind).closest("tr").dataset.line);
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages on the disk, by name."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    made = {name: page(record, str(folder)) for name, record in RECORDED.items()}
    for name, text in {**made, "large": pages.large_page()}.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(text, encoding="utf-8", newline="")
    return found


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def cnn(driver: Any, files: dict[str, Path]) -> Any:
    open_page(driver, files["cnn"])
    return driver


def texts(driver: Any, selector: str) -> list[str]:
    found: list[str] = driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((element) => element.innerText)", selector
    )
    return found


def rows(driver: Any) -> list[list[str]]:
    """The table of the page as it is shown."""
    found: list[list[str]] = driver.execute_script(
        "return [...document.querySelectorAll('#rows tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    return found


def column(driver: Any, title: str) -> list[str]:
    heads = texts(driver, "#rows thead th")
    return [row[heads.index(title)] for row in rows(driver)]


def click(driver: Any, selector: str, text: str) -> None:
    driver.execute_script(
        "[...document.querySelectorAll(arguments[0])].find((each) => each.textContent === arguments[1]).click()",
        selector,
        text,
    )


def type_filter(driver: Any, text: str) -> None:
    driver.execute_script(
        "const input = document.getElementById('filter'); input.value = arguments[0];"
        "input.dispatchEvent(new Event('input'))",
        text,
    )


def choose(driver: Any, name: str, value: str) -> None:
    driver.execute_script(
        "const select = document.getElementById(arguments[0]); select.value = arguments[1];"
        "select.dispatchEvent(new Event('change'))",
        name,
        value,
    )


def drawn(driver: Any) -> list[dict[str, Any]]:
    """The data of all charts, once they are drawn again."""
    found: list[dict[str, Any]] = driver.execute_async_script(
        "const done = arguments[0], count = devlint.processes.length;"
        "(function look() { const { results } = devlint.charts;"
        "if (results.length < count) return setTimeout(look, 10);"
        "done(results.flatMap((result, chart) => result.spec.data.values.map((value) => ({ ...value, chart })))); })();"
    )
    return found


def expected(record: Record) -> list[tuple[str, ...]]:
    """Place, direction and figures of each row of all phases, as the text report has them."""
    code, found = Code(record), []
    for phase in ("train", "eval", "setup", "between", "teardown"):
        shown = table(record.processes, phase)
        for group in shown.groups:
            found += [
                (code.place(group.frame) if group.frame else "in no line of Python", *figures(row))
                for row in group.rows
            ]
    return found


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_page_draws_itself_without_a_complaint(driver: Any, files: dict[str, Path], name: str, dark: bool) -> None:
    value = "dark" if dark else "light"
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": value}]}
    )
    open_page(driver, files[name])
    assert complaints(driver) == []
    charts = driver.execute_script("return document.querySelectorAll('#charts canvas').length")
    assert charts == driver.execute_script("return devlint.processes.length")
    wide, window = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window
    assert driver.execute_script("return window.hacked") is None
    background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")


@pytest.mark.parametrize("name", ["cnn", "simulated", "framework", "mismatch", "distributed"])
def test_the_table_shows_the_figures_of_the_record(driver: Any, files: dict[str, Path], name: str) -> None:
    record = RECORDED[name]
    open_page(driver, files[name])
    found = zip(
        column(driver, "where"),
        column(driver, "direction"),
        column(driver, "calls"),
        column(driver, "bytes"),
        strict=True,
    )
    wanted = expected(record)
    assert sorted(found) == sorted(tuple(row[:4]) for row in wanted)
    if "blocked" in texts(driver, "#rows thead th"):
        assert sorted(column(driver, "blocked")) == sorted(row[4] for row in wanted)
    else:
        assert record.simulated


def test_figures_are_written_as_the_text_report_writes_them(cnn: Any) -> None:
    chosen = random.Random(7)
    values: list[float] = [
        0,
        1,
        2.5,
        0.125,
        0.375,
        0.004,
        100.5,
        101.5,
        999.5,
        1023.5,
        1024,
        9.995,
        99.95,
        1e6,
        2**40 * 1.5,
    ]
    values += [1e-7, 4.5e-6, 0.9995e-3, 0.9994, 119.9, 120, 150, 7199, 7200, 9000]
    values += [
        chosen.choice([1, 8, 1024]) * chosen.randrange(10**6) / chosen.choice([1, 2, 8, 1000]) for _ in range(1500)
    ]
    values += [10 ** chosen.uniform(-7, 5) for _ in range(1500)]
    for name, show in {"number": number, "size": size, "duration": duration}.items():
        found = cnn.execute_script(f"return arguments[0].map((value) => devlint.{name}(value))", values)
        assert dict(zip(values, found, strict=True)) == {value: show(value) for value in values}
    pairs = [sorted(chosen.sample(values, 2)) for _ in range(500)]
    found = cnn.execute_script("return arguments[0].map((pair) => devlint.between(pair, devlint.duration))", pairs)
    assert found == [between(pair, duration) for pair in pairs]


def test_the_table_sorts(cnn: Any) -> None:
    click(cnn, "#rows thead button", "bytes")
    falling = cnn.execute_script("return devlint.rows.map((row) => row.bytes).sort((a, b) => b - a)")
    assert column(cnn, "bytes") == [size(value) if value else "" for value in falling]
    click(cnn, "#rows thead button", "bytes")
    assert column(cnn, "bytes") == [size(value) if value else "" for value in reversed(falling)]
    assert cnn.execute_script("return document.querySelector('[aria-sort]').innerText.trim()") == "bytes"
    click(cnn, "#rows thead button", "where")
    assert column(cnn, "where") == [f"train.py:{line}" for line in (6, 12, 12, 12, 17, 18, 20)]


def test_the_table_filters(cnn: Any) -> None:
    type_filter(cnn, "H2D labels")
    assert column(cnn, "code") == ["labels.to(device)"]
    assert texts(cnn, "#count") == ["1 of 1 (7 without the filter)"]
    type_filter(cnn, "no such thing")
    assert rows(cnn) == []
    type_filter(cnn, "")
    choose(cnn, "direction", "D2H")
    assert column(cnn, "direction") == ["D2H", "D2H"]
    choose(cnn, "phase", "0")
    assert column(cnn, "code") == ["loss.item()"]


def test_the_code_stands_beside_its_cost(cnn: Any) -> None:
    lines = cnn.execute_script(
        "return [...document.querySelectorAll('#code tr.costly')]"
        ".map((row) => [row.dataset.line, ...[...row.cells].map((cell) => cell.innerText.trim())])"
    )
    assert lines == [
        ["12", "2", "196 KiB", "930 us", "12", "images, labels = images.to(device), labels.to(device)"],
        ["17", "1", "4 B", "5.10 ms", "17", "total += loss.item()"],
        ["18", "1", "", "50 us", "18", "if (labels < 0).any():"],
    ]
    heat = cnn.execute_script(_HOTTEST)
    assert heat == ["12", "17"]  # most bytes there, longest blocked here
    assert len(texts(cnn, "#code tbody tr")) == 20
    cnn.execute_script("document.querySelector('#code tr[data-line=\"12\"]').click()")
    assert "H2D 1 calls, 196 KiB, 900 us blocked, pageable, blocking" in texts(cnn, "#code tr.details")[0]


def test_a_place_of_the_table_leads_to_its_code(driver: Any, files: dict[str, Path]) -> None:
    open_page(driver, files["cnn"])
    click(driver, "#rows td a", "train.py:6")
    target = driver.execute_script("return document.querySelector('#code tr.target').innerText")
    assert "model = Net().to(device)" in target
    assert "199 KiB" in target
    assert driver.execute_script("return document.getElementById('source-table').selectedOptions[0].text") == "Set-up"


def test_a_finding_leads_to_its_code_and_to_its_rule(cnn: Any) -> None:
    click(cnn, ".finding a", "train.py:7:10")
    assert "loader = DataLoader(data" in cnn.execute_script(
        "return document.querySelector('#code tr.target').innerText"
    )
    click(cnn, ".finding a", "DVL301")
    opened = cnn.execute_async_script(
        "const done = arguments[0]; setTimeout(() => done(document.getElementById('rule-DVL301').open), 100)"
    )
    assert opened


def test_the_charts_draw_the_steps(cnn: Any) -> None:
    found = drawn(cnn)
    assert sum(bar["value"] for bar in found if bar["what"] == "H2D") == 40 * 201_216
    assert {(bar["from"], bar["to"]) for bar in found} == {(each - 0.5, each + 0.5) for each in range(1, 41)}
    click(cnn, "#step-controls button", "Host blocked")
    assert sum(bar["value"] for bar in drawn(cnn) if bar["what"] == "sync") == pytest.approx(40 * 0.00005)
    click(cnn, "#step-controls button", "Step time")
    parts = [bar for bar in drawn(cnn) if bar["index"] == 0]
    assert sum(bar["value"] for bar in parts) == pytest.approx(0.0121)
    assert {bar["what"]: bar["value"] for bar in parts}["waiting for the loader"] == 0.004
    assert complaints(cnn) == []


_LABELS = """
const labels = (group) => (group.items ?? []).flatMap((item) => item.items ? labels(item)
  : group.role === "axis-label" && item.text !== undefined ? [item.text] : []);
return labels(devlint.charts.results[0].view.scenegraph().root);
"""


def test_of_two_steps_there_are_two_bars_and_two_numbers(driver: Any, tmp_path: Path) -> None:
    record = RECORDED["cnn"]
    (process,) = record.processes
    two = [step for step in process.timeline if step.phase == "train"][:2]
    path = tmp_path / "short.html"
    path.write_text(page(replace(record, processes=(replace(process, timeline=tuple(two)),)), str(tmp_path)))
    open_page(driver, path)
    assert {(bar["from"], bar["to"]) for bar in drawn(driver)} == {(0.5, 1.5), (1.5, 2.5)}
    assert [text for text in driver.execute_script(_LABELS) if text and "B" not in text] == ["1", "2"]


def test_a_bar_says_what_happened_in_its_step(cnn: Any) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    cnn.execute_script("document.getElementById('steps').scrollIntoView()")
    canvas = cnn.find_element(By.CSS_SELECTOR, "#charts canvas")
    ActionChains(cnn).move_to_element_with_offset(canvas, 7, 10).perform()
    (said,) = texts(cnn, "#tip")
    head, *flows = said.split("\n")
    number_ = int(head.removeprefix("Training step ").partition(":")[0])
    assert 1 <= number_ <= 40
    assert head.endswith(duration(0.012 + number_ * 1e-4))
    assert flows == [
        "waiting for the loader  4.00 ms", "H2D  2 calls  196 KiB  930 us blocked", "D2H  1 call  4 B  5.10 ms blocked",
        "sync  1 call  50 us blocked",
    ]  # fmt: skip


def test_ranks_have_a_chart_each_and_stand_side_by_side(driver: Any, files: dict[str, Path]) -> None:
    open_page(driver, files["distributed"])
    assert texts(driver, ".chart h3") == ["rank 0", "rank 1"]
    sums = [
        sum(bar["value"] for bar in drawn(driver) if bar["chart"] == chart and bar["what"] == "H2D") for chart in (0, 1)
    ]
    assert sums == [40 * 201_216, 39 * 201_216]
    heads = texts(driver, ".ranks thead th")
    assert heads == ["", "rank 0", "rank 1"]
    cells = [[text.strip() for text in row.split("\t")] for row in texts(driver, ".ranks tbody tr")]
    shown = {title: words for title, *words in cells}
    assert shown["step time"] == ["12.3 ms", "20.0 ms"]
    assert shown["ended"] == ["finished", "killed"]


def test_the_theme_can_be_chosen(cnn: Any) -> None:
    def shade() -> str:
        return str(cnn.execute_script("return getComputedStyle(document.body).backgroundColor"))

    assert texts(cnn, "#theme") == ["Theme: system"]
    cnn.execute_script("document.getElementById('theme').click()")
    assert (texts(cnn, "#theme"), shade()) == (["Theme: light"], "rgb(255, 255, 255)")
    cnn.execute_script("document.getElementById('theme').click()")
    assert (texts(cnn, "#theme"), shade()) == (["Theme: dark"], "rgb(13, 17, 23)")
    cnn.execute_script("document.getElementById('theme').click()")
    assert texts(cnn, "#theme") == ["Theme: system"]
    assert complaints(cnn) == []


def test_ten_thousand_lines_open(driver: Any, files: dict[str, Path]) -> None:
    open_page(driver, files["large"])
    assert complaints(driver) == []
    assert texts(driver, "#count") == ["100 of 10,000"]
    type_filter(driver, "module_07.py:99")
    assert column(driver, "where") == ["package/module_07.py:99"]
    type_filter(driver, "")
    click(driver, "#rows thead button", "bytes")
    assert column(driver, "bytes")[0] == size(4096 + 16 * 9_999)
    click(driver, "#more", "Show more")
    assert len(rows(driver)) == 600
    click(driver, "#further button", "Show 9,900 more")
    assert driver.execute_script("return document.querySelectorAll('#further tr').length") == 9_900
    assert len({bar["index"] for bar in drawn(driver)}) == 2_000


def test_no_column_is_lost_on_a_narrow_screen(driver: Any, files: dict[str, Path]) -> None:
    size_ = {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size_)
    try:
        open_page(driver, files["distributed"])
        wide, window = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert (wide, window) == (380, 380)
        assert complaints(driver) == []
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
