"""Findings that are proven: by the tests, and of whole corpora by ``python -m tests.prove.corpus``."""
