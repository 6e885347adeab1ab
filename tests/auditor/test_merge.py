"""The records of several processes become one."""

from __future__ import annotations

from dataclasses import replace

from devlint.auditor.running.merge import merge
from devlint.record import Process, Record


def record(*processes: Process, **fields) -> Record:
    return Record(processes=processes, **{"complete": True, "findings": (), "advice": (), **fields})


def test_processes_come_in_the_order_of_their_roles_and_ranks() -> None:
    child, worker = Process(pid=9, role="child"), Process(pid=1, role="loader worker")
    first, second = Process(pid=8, role="rank", rank=0), Process(pid=7, role="rank", rank=1)
    ranked_child = Process(pid=5, role="child", rank=1)
    merged = merge([record(second, worker), record(child), record(ranked_child, first)])
    assert merged.processes == (first, second, ranked_child, child, worker)


def test_it_is_complete_if_all_are_and_has_to_be_judged_anew() -> None:
    one, other = record(Process(pid=1)), record(Process(pid=2))
    merged = merge([one, other])
    assert merged.complete
    assert merged.findings is None
    assert merged.advice is None
    assert not merge([one, replace(other, complete=False)]).complete
    assert merge([one]) == one


def test_it_began_with_the_first_and_knows_all_lines() -> None:
    # 09:00 in Berlin is before 08:30 in London
    berlin = record(Process(pid=1), started="2026-01-05T09:00:00+01:00", sources={"/a.py": {1: "x"}})
    london = record(Process(pid=2), started="2026-01-05T08:30:00+00:00", sources={"/a.py": {2: "y"}, "/b.py": {1: "z"}})
    merged = merge([london, berlin])
    assert merged.started == "2026-01-05T09:00:00+01:00"
    assert merged.sources == {"/a.py": {1: "x", 2: "y"}, "/b.py": {1: "z"}}


def test_a_machine_that_is_given_twice_counts_once() -> None:
    one = record(Process(pid=1, role="rank", rank=0), started="2026-01-05T09:00:00+01:00")
    assert merge([one, one]).processes == one.processes
