"""Reading files: discovery, source text, suppressions, and the engine that runs the rules over them."""
