"""Notebooks that are checked, fixed and asked about."""
