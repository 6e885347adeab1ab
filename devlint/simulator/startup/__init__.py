"""A directory for `PYTHONPATH`: see `devlint.simulator.children`."""
