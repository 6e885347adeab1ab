"""What is counted: kernels at the accelerator's dispatch key, syncs, moves, and whose code asked for them."""
