"""What the calls of the project's own functions were given, what they kept and what they returned."""
