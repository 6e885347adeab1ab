"""Test suites of other projects, on the CPU and on the simulated accelerator, side by side.

* ``python -m tests.suites SOURCES`` takes a folder of unpacked source packages or clones, runs each suite that it knows
  twice, and writes the figures and every difference with its reason into ``docs/simulator.md``.
* ``python -m tests.suites SOURCES --suite kornia`` runs one of them and prints its differences.
* ``python -m tests.suites --list`` tells what each suite needs, which of its tests are run, and what is left out.

A suite runs in a process of its own, by the Python of ``--python``, which must have torch, pytest and what the suite
needs. Nothing is downloaded. None of this runs with the ordinary tests; only the comparison is tested.
"""
