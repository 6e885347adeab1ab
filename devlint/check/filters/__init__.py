"""Which findings are reported: those that a baseline lacks, on code that has changed since a revision."""
