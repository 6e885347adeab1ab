"""How often devlint is right: commands that measure it, and the figures they leave for docs/accuracy.md."""
