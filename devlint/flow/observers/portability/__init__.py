"""Observers of code that names, chooses or compares devices."""
