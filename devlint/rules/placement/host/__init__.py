"""What only takes tensors of the CPU, and the edit that fetches them."""
