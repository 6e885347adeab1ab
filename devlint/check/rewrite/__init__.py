"""Files that are rewritten: fixes applied, suppression comments added, or a diff of what would be."""
