"""Several devices and processes: `DataParallel`, `torch.distributed` and sharded tensors."""
