"""One run of a script, and what can be seen in it."""
