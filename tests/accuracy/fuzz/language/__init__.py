"""The language of the generated programs, a room for each of its parts."""
