"""Traces of torch.profiler (Kineto), read as records of runs.  torch is not needed."""
