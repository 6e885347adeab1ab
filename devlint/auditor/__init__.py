"""The runtime wing: runs a training script and sees where everything was."""
