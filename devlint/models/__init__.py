"""Proving what rows of libraries state: each entry is called on the simulated accelerator."""
