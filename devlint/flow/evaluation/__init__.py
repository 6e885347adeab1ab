"""The evaluator: statements, expressions and calls, by the kind of node."""
