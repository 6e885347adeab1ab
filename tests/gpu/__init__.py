"""What only a GPU can tell: ``python -m tests.gpu`` compares the audit with torch.profiler and keeps the results."""
