"""Detectors: observers of what happens in the interpreter, each of which makes one kind of site."""
