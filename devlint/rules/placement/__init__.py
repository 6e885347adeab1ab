"""DVL1: tensors and modules that are where they should not be."""
