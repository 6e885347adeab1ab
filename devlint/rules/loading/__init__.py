"""DVL3: data loaders and what they hand over."""
