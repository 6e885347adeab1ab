"""Warnings that the audit causes, and those of the script beside them."""

from __future__ import annotations

import threading
import warnings

from devlint.auditor.warning_filter import unwarned


def warn(text: str) -> None:
    warnings.warn(text, stacklevel=1)


def test_only_what_the_thread_is_warned_of_inside_is_ignored() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        before = list(warnings.filters)
        for _ in range(2):
            warn("the script's own")
            with unwarned():
                warn("the audit's")
                other = threading.Thread(target=warn, args=("another thread's",))
                other.start()
                other.join()
        assert list(warnings.filters) == before
    assert [str(warning.message) for warning in shown] == ["the script's own", "another thread's"]


def test_the_filters_may_be_emptied_meanwhile() -> None:
    with warnings.catch_warnings(record=True) as shown:
        with unwarned():
            warnings.resetwarnings()
        warn("the script's own")
    assert len(shown) == 1
