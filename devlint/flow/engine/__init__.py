"""The driver: one file being interpreted from top to bottom, and the other files that it asks."""
