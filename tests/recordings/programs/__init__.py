"""Small programs that do with a device what recorded scripts did: the same copies, sizes, flags and steps.

Each is run as ``python PROGRAM.py STEPS [more]`` by an audit with a simulated device. What happens in a function called
``prepare`` was over when the recording began, and is left out. A comment ``recorded: FILE:LINE`` stands on a line which
does what that line of the script did; where the profiler knew no more, it is the line of the function's ``def``.
"""
