"""Notebooks: their cells as one piece of Python code, and what becomes of that code back in the cells."""
