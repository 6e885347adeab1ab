"""What devlint costs, measured beside the parsers it is built on."""
