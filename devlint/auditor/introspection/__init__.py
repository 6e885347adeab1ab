"""What tensors and modules are and hold, asked without running any code of the script."""
