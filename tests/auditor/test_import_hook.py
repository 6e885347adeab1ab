"""Modules are heard of when they are imported, and look as if nobody had."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zipfile

import pytest

from devlint.auditor.running.import_hook import when_imported


@pytest.fixture
def module(tree, monkeypatch: pytest.MonkeyPatch):
    """Write ``subject.py``, to be imported for the first time."""

    def write(text: str) -> None:
        monkeypatch.syspath_prepend(tree({"subject.py": text}))
        importlib.invalidate_caches()

    before = list(sys.meta_path)
    yield write
    sys.modules.pop("subject", None)
    assert sys.meta_path == before


def test_it_calls_back_when_the_modules_own_code_has_run(module) -> None:
    module("x = 1")
    seen = []
    when_imported("subject", lambda: seen.append(sys.modules["subject"].x))
    assert seen == []
    import subject

    assert seen == [1]
    importlib.reload(subject)
    assert seen == [1]


def test_the_module_looks_as_without(module) -> None:
    module("")
    spec = importlib.util.find_spec("subject")
    when_imported("subject", lambda: None)
    watched = importlib.util.find_spec("subject")
    assert "subject" not in sys.modules
    assert (watched.name, watched.origin, type(watched.loader)) == (spec.name, spec.origin, type(spec.loader))
    import subject

    assert vars(subject.__loader__) == vars(spec.loader)


def test_what_is_there_already_calls_back_at_once(module) -> None:
    module("")
    import subject  # noqa: F401  # only its being imported matters

    seen = []
    when_imported("subject", lambda: seen.append(1))
    assert seen == [1]


def test_a_request_that_was_taken_back(module) -> None:
    module("")
    seen = []
    when_imported("subject", lambda: seen.append(1))()
    import subject  # noqa: F401  # only its being imported matters

    assert seen == []


def test_a_failed_import_fails_as_it_would_and_the_next_counts(module, tree) -> None:
    module("raise OSError('libcuda.so not found')")
    seen = []
    when_imported("subject", lambda: seen.append(1))
    with pytest.raises(OSError, match=r"libcuda\.so not found"):
        import subject
    assert seen == []
    # another size, as the compiled file goes by that and by the second
    tree({"subject.py": "fine = True"})
    importlib.invalidate_caches()
    import subject  # noqa: F401  # only its being imported matters

    assert seen == [1]


def test_a_module_that_is_not_there(module) -> None:
    module("")
    cancel = when_imported("no_such_subject", lambda: None)
    assert importlib.util.find_spec("no_such_subject") is None
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_subject'"):
        importlib.import_module("no_such_subject")
    cancel()


def test_two_who_wait_for_the_same(module) -> None:
    module("")
    seen = []
    when_imported("subject", lambda: seen.append("first"))
    when_imported("subject", lambda: seen.append("second"))
    import subject  # noqa: F401  # only its being imported matters

    assert sorted(seen) == ["first", "second"]


def test_an_archive(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has one loader for all its modules."""
    directory = tree({})
    with zipfile.ZipFile(directory / "modules.zip", "w") as archive:
        archive.writestr("subject.py", "import subject_helper; import another_subject")
        archive.writestr("subject_helper.py", "")
        archive.writestr("another_subject.py", "")
    monkeypatch.syspath_prepend(directory / "modules.zip")
    seen = []
    when_imported("subject", lambda: seen.append("subject"))
    when_imported("another_subject", lambda: seen.append("another_subject"))
    importlib.import_module("subject")
    assert seen == ["another_subject", "subject"]
    assert "exec_module" not in vars(sys.modules["subject"].__loader__)
    for name in ("subject", "subject_helper", "another_subject"):
        del sys.modules[name]


def test_what_the_callback_raises_comes_out_of_the_import(module) -> None:
    module("")

    def refuse() -> None:
        raise SystemExit(2)

    when_imported("subject", refuse)
    with pytest.raises(SystemExit):
        import subject  # noqa: F401  # it is not there afterwards
    assert "subject" not in sys.modules
