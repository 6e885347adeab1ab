"""The code around a site, as a rule reads and rewrites it: blocks, control flow, origins of values, edits, imports."""
