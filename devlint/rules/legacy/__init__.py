"""DVL7: what torch has left behind."""
