"""The compiled devlint does what the sources say."""
