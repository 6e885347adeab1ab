"""Scripts and processes: running one as Python would, following its children, keeping and merging records."""
