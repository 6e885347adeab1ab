"""`torch.Tensor`: its methods, classes, parameters and storages, and the functions that make tensors."""
