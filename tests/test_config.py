"""[tool.devlint], where it is found, what it may say, and which rules follow from it."""

from __future__ import annotations

import os
import textwrap

import pytest

from devlint.check.analysis import check_source
from devlint.config.load import Resolver, load
from devlint.config.schema import DEFAULT_EXCLUDE, Config, ConfigError, RuleLayer
from devlint.finding import Severity
from devlint.rules.selection import UnknownSelectorError, codes_of, ignored_in, selected, validate

pytestmark = pytest.mark.usefixtures("stub_rules")


def read(tree, text: str) -> Config:
    return load(str(tree({"pyproject.toml": textwrap.dedent(text)}) / "pyproject.toml"), validate)


def test_every_key(tree) -> None:
    config = read(
        tree,
        """
        [tool.devlint]
        select = ["DVL1", "hardcoded-cuda-call"]
        ignore = ["DVL102"]
        extend-select = ["DVL605"]
        exclude = ["gen"]
        extend-exclude = ["/old/"]
        force-exclude = true
        respect-gitignore = false
        target-torch = "2.4"
        fail-on = "error"
        output-format = "concise"

        [tool.devlint.per-file-ignores]
        "tests/**" = ["DVL6"]
        """,
    )
    assert config == Config(
        rule_layers=(RuleLayer(("DVL1", "hardcoded-cuda-call"), ("DVL102",), ("DVL605",)),),
        per_file_ignores=(("tests/**", ("DVL6",)),),
        exclude=("gen",),
        extend_exclude=("/old/",),
        force_exclude=True,
        respect_gitignore=False,
        target_torch=(2, 4),
        fail_on=Severity.ERROR,
        output_format="concise",
        root=os.getcwd(),
    )


def test_an_empty_table_is_the_default(tree) -> None:
    assert read(tree, "[tool.devlint]") == Config(root=os.getcwd())
    assert Config().exclude == DEFAULT_EXCLUDE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.devlint", "not valid TOML"),
        ("[tool.devlint]\nselect = [", "not valid TOML"),
        ("[tool.devlint]\nselct = []", "unknown key 'selct' in [tool.devlint] (did you mean 'select'?)"),
        ("[tool.devlint]\nzzz = 1", "unknown key 'zzz'"),
        ("[tool.devlint.lint]\nselect = []", "unknown key 'lint'"),
        ("[tool]\ndevlint = 3", "[tool.devlint] must be a table"),
        ("[tool.devlint]\nselect = 'DVL1'", "select: expected a list of strings"),
        ("[tool.devlint]\nselect = [1]", "select: expected a list of strings"),
        ("[tool.devlint]\nselect = ['DVL777']", "unknown rule 'DVL777'"),
        ("[tool.devlint]\nignore = ['discarded-mov']", "unknown rule 'discarded-mov' (did you mean 'discarded-move'?)"),
        ("[tool.devlint]\nextend-select = ['']", "unknown rule ''"),
        ("[tool.devlint]\nper-file-ignores = ['x']", "per-file-ignores: expected a table"),
        ("[tool.devlint.per-file-ignores]\n'a.py' = 'DVL1'", "per-file-ignores: expected a list of strings"),
        ("[tool.devlint.per-file-ignores]\n'a.py' = ['DVL8']", "unknown rule 'DVL8'"),
        ("[tool.devlint]\nexclude = ['[z-a]']", "exclude: '[z-a]' is not a file pattern"),
        ("[tool.devlint.per-file-ignores]\n'!' = []", "per-file-ignores: '!' is not a file pattern"),
        ("[tool.devlint]\ntarget-torch = 2.4", "target-torch: expected a string"),
        ("[tool.devlint]\ntarget-torch = 'new'", "target-torch: expected a torch version such as '2.4', not 'new'"),
        ("[tool.devlint]\nfail-on = 'warn'", "fail-on: expected one of 'info', 'warning', 'error', not 'warn'"),
        ("[tool.devlint]\nfail-on = ['error']", "fail-on: expected one of"),
        ("[tool.devlint]\noutput-format = 'xml'", "output-format: expected one of"),
        ("[tool.devlint]\nforce-exclude = 1", "force-exclude: expected true or false"),
        (
            "[tool.devlint]\nexclude-kinds = ['test']",
            "exclude-kinds: expected one of 'tests', 'notebooks', 'examples', 'vendored', not 'test'",
        ),
        ("[tool.other]", "there is no [tool.devlint] table"),
        ("[tool.devlint]\nx = " + "1" * 5000, "not valid TOML: Exceeds the limit"),
        ("[tool.devlint]\nx = " + "[" * 5000, "not valid TOML"),
    ],
)
def test_what_is_wrong_is_one_clear_line(tree, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tree, text)
    line = str(caught.value)
    assert line.startswith(os.path.join(os.getcwd(), "pyproject.toml") + ": ")
    assert words in line


def test_a_byte_order_mark_is_not_part_of_the_text(tree) -> None:
    assert read(tree, "\ufeff[tool.devlint]\nfail-on = 'error'").fail_on is Severity.ERROR


def test_bytes_that_are_no_text(tree) -> None:
    root = tree({"pyproject.toml": b"[tool.devlint]\nx = '\xff'"})
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(str(root / "pyproject.toml"), validate)


def test_a_file_of_its_own_needs_no_table(tree) -> None:
    root = tree({"devlint.toml": 'select = ["DVL6"]'})
    assert load(str(root / "devlint.toml"), validate).rule_layers == (RuleLayer(("DVL6",)),)
    with pytest.raises(ConfigError, match="No such file"):
        load(str(root / "nope.toml"), validate)


def test_the_nearest_table_is_found_by_walking_up(tree) -> None:
    root = tree(
        {
            "pyproject.toml": "[tool.devlint]\nfail-on = 'error'",
            "a/pyproject.toml": "[tool.ruff]",
            "a/b/c/x.py": "",
            "d/pyproject.toml": "[tool.devlint]",
            "e/pyproject.toml": "this is not TOML, and not for us",
            "f/pyproject.toml/x.py": "",
        }
    )
    resolver = Resolver(validate)
    assert resolver.at(str(root / "a" / "b" / "c")).fail_on is Severity.ERROR
    assert resolver.at(str(root / "d")).fail_on is Severity.WARNING
    assert resolver.at(str(root / "e")).root == str(root)
    assert resolver.at(str(root / "f")).root == str(root)


def test_each_directory_is_looked_at_once(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree({"pyproject.toml": "[tool.devlint]", "a/b/x.py": ""})
    resolver = Resolver(validate)
    first = resolver.at(str(root / "a" / "b"))
    monkeypatch.setattr("devlint.config.load.load_directory", lambda directory: pytest.fail(directory))
    assert resolver.at(str(root / "a" / "b")) is resolver.at(str(root / "a")) is first


# --- which rules ---------------------------------------------------------------------------------


def chosen(*layers: RuleLayer) -> str:
    config = Config()
    for layer in layers:
        config = config.selecting(layer)
    return " ".join(rule.code.removeprefix("DVL") for rule in selected(config))


def test_selectors() -> None:
    assert codes_of("ALL") == {"DVL101", "DVL102", "DVL601", "DVL605", "DVL900", "DVL901"}
    assert codes_of("all") == codes_of("DVL") == codes_of("ALL")
    assert codes_of("DVL10") == {"DVL101", "DVL102"}
    assert codes_of("dvl601") == {"DVL601"}
    assert codes_of("hardcoded-cuda-call") == {"DVL601"}
    for unknown in ("", "D", "E501", "DVL2", "DVL1011", "hardcoded"):
        with pytest.raises(UnknownSelectorError):
            codes_of(unknown)


@pytest.mark.parametrize(
    ("layers", "rules"),
    [
        ([], "101 102 601 900 901"),
        ([RuleLayer(("DVL6",))], "601 605 900"),
        ([RuleLayer(("ALL",))], "101 102 601 605 900 901"),
        ([RuleLayer(())], "900"),
        ([RuleLayer(("discarded-move",))], "102 900"),
        ([RuleLayer(ignore=("DVL1",))], "601 900 901"),
        ([RuleLayer(extend_select=("DVL605",))], "101 102 601 605 900 901"),
        ([RuleLayer(("DVL1",), ("DVL102",))], "101 900"),
        ([RuleLayer(("DVL102",), ("DVL1",))], "102 900"),
        ([RuleLayer(("DVL101",), ("device-mismatch",))], "900"),
        ([RuleLayer(("ALL",), ("DVL6",), ("DVL605",))], "101 102 605 900 901"),
        ([RuleLayer(("ALL",), ("DVL900",))], "101 102 601 605 901"),
        ([RuleLayer(("DVL1",), ("DVL102",)), RuleLayer(("DVL102",))], "102 900"),
        ([RuleLayer(("DVL1",)), RuleLayer(ignore=("DVL102",))], "101 900"),
        ([RuleLayer(("DVL1",), ("DVL102",)), RuleLayer(extend_select=("DVL102",))], "101 102 900"),
    ],
    ids=str,
)
def test_the_most_specific_selector_wins_and_later_layers_go_on_top(layers: list[RuleLayer], rules: str) -> None:
    assert chosen(*layers) == rules


def test_per_file_ignores(tmp_path) -> None:
    config = Config(
        root=str(tmp_path),
        per_file_ignores=(("tests", ("DVL1",)), ("*_old.py", ("DVL601",)), ("!src/**", ("discarded-move",))),
    )
    assert ignored_in(str(tmp_path / "src" / "a.py"), config) == set()
    assert ignored_in(str(tmp_path / "src" / "tests" / "a.py"), config) == {"DVL101", "DVL102"}
    assert ignored_in(str(tmp_path / "src" / "a_old.py"), config) == {"DVL601"}
    assert ignored_in(str(tmp_path / "a.py"), config) == {"DVL102"}
    assert ignored_in(str(tmp_path.parent / "a_old.py"), config) == set()


def test_severity_of_rules(tree) -> None:
    config = read(tree, "[tool.devlint.severity]\nDVL102 = 'info'\nDVL1 = 'error'\nhardcoded-cuda-call = 'error'\n")
    found = check_source("dropped(); mismatch(); hint()", "x.py", config)
    assert [(finding.code, str(finding.severity)) for finding in found] == [
        ("DVL102", "info"),
        ("DVL101", "error"),
        ("DVL601", "error"),
    ], "the more specific selector wins, and names work"


def test_severity_of_what_devlint_says_itself(tree) -> None:
    config = read(tree, "[tool.devlint.severity]\nALL = 'info'\nDVL901 = 'error'")
    assert [str(finding.severity) for finding in check_source("def f(:", "x.py", config)] == ["info"]
    assert [str(finding.severity) for finding in check_source("x  # devlint: ignore", "x.py", config)] == ["error"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("severity = 'error'", 'severity: expected a table such as { DVL601 = "error" }'),
        ("severity = { DVL601 = 'off' }", "a rule is switched off by `ignore`"),
        ("severity = { DVL601 = 'warn' }", "expected one of 'info', 'warning', 'error', not 'warn'"),
        ("severity = { DVL777 = 'error' }", "unknown rule 'DVL777'"),
        ("severity = { DVL601 = 2 }", "expected one of 'info', 'warning', 'error', not 2"),
    ],
)
def test_a_wrong_severity_is_one_line(tree, table: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tree, f"[tool.devlint]\n{table}\n")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
