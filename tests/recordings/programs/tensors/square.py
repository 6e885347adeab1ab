"""Squares a matrix of 400 MB that is made on the host and copied, in each round."""

import sys

import torch

for _ in range(int(sys.argv[1])):
    torch.square(torch.empty(10000, 10000).cuda())
