"""DVL6: code that runs on one kind of machine only."""
