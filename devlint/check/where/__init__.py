"""``devlint where``: where the values of names live."""
