"""The rules, a folder for each family, and what becomes of selectors, sites and reports around them."""
