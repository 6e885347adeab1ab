"""Transfer functions: what an operation of the language does to values, whatever library they come from."""
