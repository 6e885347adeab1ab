"""Models of torch itself: functions, moves, creation, random numbers."""
