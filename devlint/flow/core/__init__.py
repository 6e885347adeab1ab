"""The contract of the interpreter: frames, calls, the registry of models, and the events that observers hear."""
