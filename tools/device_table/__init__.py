"""Derives devlint's device table from the installed torch: see `tools/make_device_table.py`."""
