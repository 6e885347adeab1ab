"""The text of files: decoded, parsed, edited and written back; of a notebook, as one script."""
