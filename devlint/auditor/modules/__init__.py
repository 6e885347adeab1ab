"""The live modules of a run: their forward passes, what they hold unregistered, their wrappers and optimizers."""
