"""From a finding to what came of it: a search, and then one run of the script that was found, by itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from devlint.finding import Finding
from devlint.prove.claim import Claim
from devlint.prove.modules import Module, module_of
from devlint.prove.process import ProcessError, ask
from devlint.source.tree import Source

CONFIRMED, REFUTED, NOT_SHOWN = "confirmed", "refuted", "not shown"


@dataclass(frozen=True)
class Verdict:
    """``kind`` is one of the three, ``text`` what was seen or why nothing was, ``script`` the reproduction."""

    kind: str
    text: str
    script: str = ""


def prove(finding: Finding, source: Source, others: Iterable[Finding] = ()) -> Verdict:
    """Look for a reproduction of a finding, among others in the file, and run it.

    A ProcessError says that nothing can be run here.
    """
    claim, module = Claim.of(finding, others), module_of(finding.filename, source.tree)
    found = ask(claim, module)
    script = found.get("script", "")
    if not script:
        return Verdict(found.get("verdict", NOT_SHOWN), found["why"])
    try:
        seen = ask(claim, module, script)
    except ProcessError as error:
        seen = {"shown": "", "why": str(error)}
    whole = _headed(script, module)
    if seen.get("shown"):
        shown = _here(seen["shown"], claim, module, finding)
        return Verdict(CONFIRMED, shown, f"{whole}# {shown}\n")
    return Verdict(NOT_SHOWN, f"the script shows nothing when it runs by itself: {seen.get('why', 'it ended')}", whole)


def _headed(script: str, module: Module) -> str:
    """The script with how it is run."""
    set_first = f"{module.hint} " if module.hint else ""
    return f"# {set_first}devlint audit --simulate repro.py, or with a GPU: {set_first}python repro.py\n{script}"


def _here(text: str, claim: Claim, module: Module, finding: Finding) -> str:
    """Names of files as the user gives them, and those of installed packages from there."""
    installed = os.path.isabs(finding.filename)
    name = os.path.relpath(claim.file, os.path.realpath(module.root)) if installed else finding.filename
    return text.replace(claim.file, name).replace(os.path.join(os.path.realpath(os.getcwd()), ""), "")
