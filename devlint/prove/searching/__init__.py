"""The way from a claim to a script: entries, plans, the search, and the smallest plan."""
