"""The vocabulary between the two wings and the rules: places where something happens to a device.

The static wing infers sites from the code, the audit observes them in a run; a rule looks at one kind of site and does
not ask where it came from.  What a wing cannot know is ``None`` (or empty), and a rule never guesses.
"""
