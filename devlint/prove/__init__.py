"""``devlint prove``: a reproduction of a finding, and what it does on the simulated accelerator."""
