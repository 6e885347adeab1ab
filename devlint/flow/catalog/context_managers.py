"""Context managers by what they do to the place where new tensors are made."""

from __future__ import annotations

CURRENT = ("cuda.device", "accelerator.device_index")
"""What makes another accelerator the current one, and leaves the default device alone."""
KNOWN = ("torch.", "contextlib.")
"""Where the context managers come from of which it is known that only a device changes where tensors are made."""
FAKE = "FakeTensorMode"
ELSEWHERE = frozenset({"init_module", "init_tensor", "init_empty_weights", "init_on_device", "zero.Init"})
"""What makes modules elsewhere in Lightning, accelerate and DeepSpeed."""
