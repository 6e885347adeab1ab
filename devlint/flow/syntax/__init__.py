"""Abstract syntax: what the text of a file says by itself, without a value of anything."""
