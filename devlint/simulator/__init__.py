"""A simulated accelerator: real data, real device errors, no GPU."""
