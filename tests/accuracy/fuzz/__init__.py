"""Differential fuzzing: small programs are read by `devlint check`, and run on the simulated accelerator."""
