"""Readings by strangers: two people who know neither devlint's rules nor its authors judge findings as maintainers.

The protocol. The commit of devlint is frozen. At least 14 repositories that are named nowhere in the project are chosen
before anything is run; from the ninth round on such as have a commit of the last three years, since only where somebody
keeps a repository up can anybody merge something. `devlint check` runs on each without arguments, so that a project's
own configuration holds. 150 findings are drawn with a fixed seed: by severity and rule in turn, and within these by
repository in turn. Two readers judge each finding in its code, each alone; a long sheet may be split among several
pairs:

right      the message is true, and the maintainers would take the advice
debatable  it is true, or nearly so, and a maintainer would shrug
wrong      it is false, or its advice does not cure or breaks something

Where the two differ the finding counts as debatable. The first figures stand. A round is a file `N.json` beside this
one, with its verdicts; what is read is kept by its place, and no line of its code. A round is kept as soon as it is
drawn, so that no draw can be chosen, and has figures once both readers have judged all of it.

    python -m tests.accuracy.readings draw 2 --mirror DIR --sheet FILE --seed TEXT owner/name@commit ...
    python -m tests.accuracy.readings judge 2 FIRST SECOND
    python -m tests.accuracy.readings

The first draws a round and writes what the readers get; the second takes their answers, JSON lists of
`{"number": 1, "verdict": "right", "why": "..."}`; the third computes the figures of docs/accuracy.md from all rounds.
DIR has a bare clone of each repository at DIR/owner+name/repo.
"""
