"""The abstract domain: values, the heap, path conditions, and how two states join."""
