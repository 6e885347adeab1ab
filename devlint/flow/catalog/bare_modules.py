"""Modules of torch that may hold nothing: no parameter, no buffer, no other module."""

from __future__ import annotations

TAKE_MODULES = frozenset({"torch.nn.TripletMarginWithDistanceLoss"})
"""Those without a part of their own that can be given one."""
BARE_BY_DEFAULT = frozenset(f"torch.nn.InstanceNorm{rank}d" for rank in (1, 2, 3))
"""Those that have none of what they can have unless an argument behind the first asks for it."""
OF_PARAMETERS = ("affine", "elementwise_affine")
"""The arguments that say whether there are parameters."""
OF_BUFFERS = ("track_running_stats",)
"""The arguments that say whether there are buffers."""
