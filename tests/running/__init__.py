"""Every fixture of the rules is run: what a `bad` case is said to do, it does, and a `good` case runs clean.

`cases` reads a file's cases and what their comments say of running them, `arguments` has what they are called with,
`instrument` lets chosen expressions tell their values, `execution` makes one run, `child` makes all runs of some
rules in one process, `outcomes` starts it and gathers what came of it, ``python -m tests.running DVL201`` shows that.

How a rule's mistake shows is a *claim*, in `claims/`: a `Claim` under the rule's code, in the module of its family.
"""
