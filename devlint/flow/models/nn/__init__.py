"""Models of torch.nn: modules, wrappers for several devices, process groups."""
