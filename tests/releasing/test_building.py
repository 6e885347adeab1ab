"""The tools of a release: its notes, the page in the package index, and the check of what was installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import devlint
from tools.releasing.links import absolute, outward
from tools.releasing.notes import notes
from tools.releasing.site import on_page_markdown

ROOT = Path(devlint.__file__).parents[1]
HOME = "https://example.org/o/devlint"


def python(*command: str | Path, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run([sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True)


CHANGELOG = """# Changelog

## [Unreleased]

- later

## [0.2.0] - 2026-12-01

### Added

- this

## [0.2.0rc1]

## [0.1.0]

- first
"""


@pytest.mark.parametrize(
    ("version", "text"),
    [("0.2.0", "### Added\n\n- this"), ("0.1.0", "- first"), ("0.2.0rc1", ""), ("0.3.0", ""), ("0.1", "")],
)
def test_the_notes_are_the_section_of_the_version(version: str, text: str) -> None:
    assert notes(CHANGELOG, version) == text


def test_a_tag_of_another_version_is_refused() -> None:
    done = python("-m", "tools.releasing.notes", "--tag", f"v{devlint.__version__}")
    assert done.returncode == 0, done.stderr
    assert done.stdout == python("-m", "tools.releasing.notes", "--tag", "").stdout != ""
    done = python("-m", "tools.releasing.notes", "--tag", "v99.0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: the tag is v99.0, but the sources are of version {devlint.__version__}\n"


def test_the_links_of_the_readme_lead_to_the_repository_in_the_package_index() -> None:
    text = '[a](docs/a.md#b) [b](#b) [c](https://x.org) [<img src="docs/p.png" width="3">](docs/p.md) ![d](docs/d.png)'
    assert absolute(text, HOME, "v1") == (
        f'[a]({HOME}/blob/v1/docs/a.md#b) [b](#b) [c](https://x.org) [<img src="{HOME}/raw/v1/docs/p.png" width="3">]'
        f"({HOME}/blob/v1/docs/p.md) ![d]({HOME}/raw/v1/docs/d.png)"
    )


def test_links_out_of_the_pages_lead_to_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[a](../README.md#install) [b](b.md) [c](../devlint/flow) [d](#d)"
    assert outward(text, "", HOME) == (
        f"[a]({HOME}/blob/main/README.md#install) [b](b.md) [c]({HOME}/blob/main/devlint/flow) [d](#d)"
    )
    assert outward("[a](../b.md) [c](../../d.md)", "inner", HOME) == f"[a](../b.md) [c]({HOME}/blob/main/d.md)"
    monkeypatch.setenv("DEVLINT_REPOSITORY", f"{HOME}/")
    page = SimpleNamespace(file=SimpleNamespace(src_uri="a.md"))
    markdown = "[a](../LICENSE) git+https://git.example.org/devlint@1"
    assert on_page_markdown(markdown, page=page) == f"[a]({HOME}/blob/main/LICENSE) git+{HOME}@1"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It is built strictly: a broken link, a place that is not there or a page left out is an error."""
    if not (ROOT / "mkdocs.yml").exists():
        pytest.skip("the documentation is not part of this distribution")
    pytest.importorskip("material", reason="needs Python 3.11")
    folder = tmp_path_factory.mktemp("site")
    command = ["-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = python(*command, NO_MKDOCS_2_WARNING="1")
    assert (done.returncode, done.stderr) == (0, "")
    return folder


PAGES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


def test_the_site_asks_no_other_one(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="https?://(?!git\.example\.org)[^"]*"', index)
    assert (site / "search" / "search_index.json").exists()


@pytest.mark.parametrize("page", PAGES)
def test_the_site_shows_a_page_as_github_does(site: Path, page: str) -> None:
    """Two readers of Markdown, which differ where a list or a block of code is indented otherwise than both expect."""
    markdown = pytest.importorskip("markdown_it", reason="comes with rich").MarkdownIt("commonmark").enable("table")
    expected = markdown.render((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    file = site / "index.html" if page == "README" else site / page / "index.html"
    (found,) = re.findall(r"<article.*?</article>", file.read_text(encoding="utf-8"), re.DOTALL)
    tags = ("h1", "h2", "h3", "li", "p", "pre", "table", "td", "em", "strong", "img")
    assert {tag: found.count(f"<{tag}>") + found.count(f"<{tag} ") for tag in tags} == {
        tag: expected.count(f"<{tag}>") + expected.count(f"<{tag} ") for tag in tags
    }


def smoke(folder: Path, kind: str) -> subprocess.CompletedProcess[str]:
    """With the devlint that is installed, if that is this one."""
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    where = [sys.executable, "-c", "import devlint; print(devlint.__file__)"]
    found = subprocess.run(where, cwd=folder, env=plain, capture_output=True, text=True)
    if found.stdout.strip() != devlint.__file__:
        pytest.skip("this devlint is not installed")
    script = ROOT / "tools" / "releasing" / "smoke.py"
    return subprocess.run([sys.executable, script, kind], cwd=folder, capture_output=True, text=True)


def test_an_installed_devlint_that_works_passes(tmp_path: Path) -> None:
    done = smoke(tmp_path, "--pure")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("devlint")


def test_an_installed_devlint_of_the_wrong_kind_is_refused(tmp_path: Path) -> None:
    done = smoke(tmp_path, "--compiled")
    assert done.returncode == 1
    assert done.stderr == f"smoke: this devlint is of the wrong kind: devlint {devlint.__version__}\n"


@pytest.mark.skipif(os.name != "posix", reason="folders that cannot be written are of another kind")
class TestABareMachine:
    """What tools/releasing/bare.py takes away, and what it makes of the answers."""

    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        """One that another user can reach."""
        with tempfile.TemporaryDirectory() as name:
            Path(name).chmod(0o755)
            yield Path(name)

    def bare(self, program: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """With a devlint that is a script of ours."""
        (folder / "devlint").write_text(
            f"#!{sys.executable}\nimport os, sys\nsys.path.insert(0, {str(ROOT)!r})\n{program}"
        )
        (folder / "devlint").chmod(0o755)
        code = (
            "import sysconfig\n"
            f"sysconfig.get_path = lambda _: {str(folder)!r}\n"
            "from tools.releasing import bare\n"
            "bare.main()\n"
        )
        return python("-c", code, TMPDIR=str(folder))

    def test_this_devlint_answers_on_one(self, folder: Path) -> None:
        done = self.bare("from devlint.__main__ import main\nmain()\n", folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(r"bare: \d\d commands answer(; not taken away: .+)?\n", done.stdout)

    def test_an_answer_of_more_than_a_line_is_refused(self, folder: Path) -> None:
        done = self.bare("print(os.environ['HOME'], file=sys.stderr)\nraise OSError('no home')\n", folder)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("bare: devlint check --isolated")
        assert "OSError: no home\n" in done.stderr

    def test_nothing_of_this_machine_is_left(self, folder: Path) -> None:
        program = (
            "import shutil, socket\n"
            "assert not shutil.which('git') and not shutil.which('cc') and 'PYTHONPATH' not in os.environ\n"
            "print(*sorted(name for _, name in socket.if_nameindex()), file=sys.stderr)\n"
            "sys.exit(9)\n"
        )
        done = self.bare(program, folder)
        assert "9 instead of 1" in done.stderr
        if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0:
            assert done.stderr.splitlines()[-1] in ("lo", "")
