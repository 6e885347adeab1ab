"""Which hints a fix may lead to, although it should add no finding of any rule; each pair with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from devlint.finding import Finding, Severity

FOLLOWED = {
    # What is on the CPU on every path is moved from there. It might be created on the device instead.
    ("DVL101", "DVL203"),
    # A move that was dropped did nothing. Now that it is made, it can be said that it might be spared.
    ("DVL102", "DVL203"),
    # What was moved afterwards, together with what was created, is there from the beginning now.
    ("DVL103", "DVL201"),
    # What a constructor makes on its device stays there when the module is moved, as it did before.
    ("DVL203", "DVL104"),
    # A buffer moves with its module, and a tensor that takes its place on another path is on the CPU as before.
    ("DVL104", "DVL103"),
    # To be read, the tensor has to come to the host, and for that the host waits.
    ("DVL107", "DVL401"),
    # The old name has CUDA in it, the new one takes it as an argument, and that is where DVL602 reads it.
    ("DVL701", "DVL602"),
}


def codes(findings: Iterable[Finding]) -> Counter[str]:
    """How often each rule fires."""
    return Counter(finding.code for finding in findings)


def added(before: Iterable[Finding], after: Collection[Finding], fixed: Collection[str]) -> Counter[str]:
    """How many findings of each rule came with fixes of others, without the hints that may."""
    more = codes(after) - codes(before)
    for finding in after:
        if finding.severity is Severity.INFO and any((code, finding.code) in FOLLOWED for code in fixed):
            more[finding.code] -= 1
    return +more
