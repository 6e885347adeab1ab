"""Observers of waits, copies and memory that cost time."""
