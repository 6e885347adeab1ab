"""Clients of the audit: scripts on real libraries, run plain and audited, and what came of them."""
