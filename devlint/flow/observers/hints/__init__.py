"""Observers of tensors that will meet only later, and probably on different devices."""
