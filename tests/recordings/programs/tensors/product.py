"""Multiplies a matrix that is made on the host and copied, in each step, with itself."""

import sys

import torch

for _ in range(int(sys.argv[1])):
    x = torch.randn(1000, 1000).cuda()  # recorded: <ipython-input>:18
    y = x @ x
