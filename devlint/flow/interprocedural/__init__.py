"""Interprocedural analysis: arguments, summaries, callers, and other files."""
