"""Models of torch.utils.data: loaders, samplers, data sets."""
