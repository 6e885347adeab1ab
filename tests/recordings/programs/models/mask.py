"""A model may ask whether its mask leaves anything out; whoever measures waits for the device afterwards."""

import sys

import torch


def prepare():
    return torch.ones(16, 2048, device="cuda", dtype=torch.bool)


def in_qwen(mask):
    return None if torch.all(mask) else mask  # recorded: transformers/modeling_attn_mask_utils.py:243


def in_bert(mask):
    return None if torch.all(mask) else mask  # recorded: transformers/modeling_attn_mask_utils.py:429


asked = {"qwen": in_qwen, "bert": in_bert, "none": torch.logical_not}[sys.argv[2]]
mask = prepare()
for _ in range(int(sys.argv[1])):
    asked(mask)
    torch.cuda.synchronize()  # recorded: moca/library/profiling/profile.py:34
