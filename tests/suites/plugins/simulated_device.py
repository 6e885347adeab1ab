"""A pytest plugin that gives the process a simulated CUDA device before anything else imports torch."""

import torch  # noqa: F401  # it has to be there first

from devlint import simulator

simulator.install(1)
