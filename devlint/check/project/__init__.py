"""The project around a file: its modules, what names in them mean, and what a result depends on."""
