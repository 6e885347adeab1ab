"""``python -m tests.running DVL201``: run the fixtures of a rule, and say what is not as it is said to be."""

from __future__ import annotations

import argparse
import sys

from tests.running.outcomes import run


def main() -> int:
    """1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.running", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="DVL", help="the beginning of the rules' codes, or a pattern")
    parser.add_argument("--machine", choices=["simulated", "host", "real"], default="simulated")
    parser.add_argument("--apart", action="store_true", help="each run in a process of its own, which takes longer")
    options = parser.parse_args()
    outcomes = run(options.machine, options.pattern, options.apart)
    wrong = [line for outcome in outcomes for line in outcome.complaints()]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
