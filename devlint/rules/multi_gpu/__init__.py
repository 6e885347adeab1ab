"""DVL5: work that is shared by several devices."""
