"""Observers of tensors and modules that stay behind where their module goes."""
