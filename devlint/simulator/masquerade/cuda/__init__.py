"""`torch.cuda` and `torch.accelerator`: devices, streams, memory, random numbers, on a simulated card."""
