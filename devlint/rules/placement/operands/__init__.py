"""Operands on different devices: where they meet, what strayed, and the fix."""
