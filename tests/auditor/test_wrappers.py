"""DataParallel and DistributedDataParallel, seen as they are made."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from devlint.auditor.modules.wrappers import Wrappers, _ids
from tests.auditor.watching import seen, watching


def test_a_wrapper_and_where_it_was_made() -> None:
    with watching(Wrappers) as session:
        at = sys._getframe().f_lineno + 1
        wrapped = nn.DataParallel(nn.Linear(2, 2))
        (wrapper,) = seen(session).wrappers
    assert isinstance(wrapped.module, nn.Linear)
    assert (wrapper.name, wrapper.module_device, wrapper.error) == ("DataParallel", "cpu", "")
    assert wrapper.device_ids is None  # it was given none, and took all there are
    assert wrapper.frame is not None
    assert (wrapper.frame.file, wrapper.frame.line) == (__file__, at)


def test_a_constructor_that_raises() -> None:
    with watching(Wrappers) as session:
        with pytest.raises(ValueError, match=r"init_process_group|device_ids") as caught:
            nn.parallel.DistributedDataParallel(nn.Linear(2, 2), device_ids=[1])
        (wrapper,) = seen(session).wrappers
    assert (wrapper.name, wrapper.device_ids) == ("DistributedDataParallel", (1,))
    assert wrapper.error
    assert wrapper.error in str(caught.value)


def test_ids() -> None:
    assert _ids([0, torch.device("cuda", 1), "cuda:2"]) == (0, 1, 2)
    assert _ids(None) is None
