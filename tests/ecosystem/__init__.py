"""devlint on real, pinned releases of large projects: what it finds there, and whether it is right.

The fixtures say what each rule should do; this says what all of them together do to code which nobody wrote for a test.

* ``python -m tests.ecosystem`` runs every rule over six pinned wheels and compares what it finds with the reviewed
  ``expected.json`` (counts per rule) and ``findings/WHEEL.txt`` (one ``path:row code`` per finding).
* ``python -m tests.ecosystem --show --code DVL101`` prints findings with the code around them, for reading by hand.
* ``python -m tests.ecosystem --update`` records what is found now. Read the listed differences first.
* ``python -m tests.ecosystem verdicts`` compares the default findings with ``verdicts/WHEEL.csv``, where a reader wrote
  down finding by finding whether devlint is right.
* ``python -m tests.ecosystem fixes`` applies all fixes, the unsafe ones too, to copies of the wheels. It fails unless
  each file still parses, each changed line was reported (or is an added import), the rules are silent where they were
  fixed, none has more to say than before, and a second run changes nothing.

None of this runs with the ordinary tests: it downloads 25 MB once, and takes minutes. Only the comparison is tested.
"""
