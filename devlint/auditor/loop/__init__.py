"""The training loop of a run: its loaders, its steps, and where one ends."""
