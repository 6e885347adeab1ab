"""Library models: what a call of a library returns and does, one module per part of a library."""
