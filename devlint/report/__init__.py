"""What is said of findings, rules and runs, to people and to programs."""
