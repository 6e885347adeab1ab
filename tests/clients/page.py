"""The tables of docs/clients.md, of results that are kept as JSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.clients.catalog import CLIENTS
from tests.clients.running import ROOT

RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "clients.md"
BEGIN = "<!-- clients: written by python -m tests.clients -->\n"
END = "<!-- end of clients -->\n"

Results = dict[str, dict[str, Any]]


def load() -> Results:
    """The results by part (``runs``, ``taught``) and client."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {"runs": {}, "taught": {}}


def store(results: Results) -> None:
    """Keep the results, in the order of the catalog, and write the page of them."""
    order = [client.name for client in CLIENTS]
    kept = {part: {name: rows[name] for name in order if name in rows} for part, rows in results.items()}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    head, tail = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(f"{head}{BEGIN}{tables(kept)}{END}{tail}", encoding="utf-8")


def tables(results: Results) -> str:
    """What stands between the marks."""
    runs, taught = results["runs"], results["taught"]
    ran = {name: row for name, row in runs.items() if not row["failure"]}
    failed = {name: row for name, row in runs.items() if row["failure"]}
    losses = Counter(row["losses"] for row in ran.values())
    ratios = sorted(row["ratio"] for row in ran.values())
    lines = [
        f"{len(ran)} of {len(runs)} clients ran. devlint crashed in {sum(row['crashed'] for row in runs.values())}. "
        + "; ".join(f"{count} {told}" for told, count in losses.most_common())
        + f". Time, median {ratios[len(ratios) // 2]:.1f}, worst {ratios[-1]:.1f} times the plain run.",
        "",
        "| client | versions | steps | what the audit says first | losses | time |",
        "|---|---|---|---|---|---:|",
    ]
    for name, row in ran.items():
        told = f"{row['findings']}{_plain(row['in_short'])}"
        lines.append(f"| {name} | {row['versions']} | {row['steps']} | {told} | {row['losses']} | {row['ratio']:.1f} |")
    if failed:
        lines += ["", "### What did not run", "", "| client | versions | why |", "|---|---|---|"]
        lines += [f"| {name} | {row['versions']} | {_plain(row['failure'])} |" for name, row in failed.items()]
    if taught:
        lines += ["", *_of_evidence(taught)]
    return "\n".join(lines) + "\n"


def _of_evidence(taught: dict[str, Any]) -> list[str]:
    done = {name: row for name, row in taught.items() if not row["failure"]}
    alone = sum(row["alone"] for row in done.values())
    new, withdrawn = (sum(len(row[part]) for row in done.values()) for part in ("new", "withdrawn"))
    lines = [
        "### With the run as evidence",
        "",
        f"{len(done)} clients: {alone} findings without the run; with it {new} more, {withdrawn} withdrawn.",
        "",
        "| client | files | findings | new | withdrawn | which |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for name, row in done.items():
        which = [f"new: {_plain(each)}" for each in row["new"]] + [f"gone: {_plain(each)}" for each in row["withdrawn"]]
        counts = f"{row['files']} | {row['alone']} | {len(row['new'])} | {len(row['withdrawn'])}"
        lines.append(f"| {name} | {counts} | {'<br>'.join(which)} |")
    return lines


def _plain(text: str) -> str:
    """Text in a cell."""
    return text.replace("|", "\\|").replace("<", "&lt;")
