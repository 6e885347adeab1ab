"""Fixes: from the findings of a file to its new text, and from that to the disk or to a diff."""
