"""From a model's forward to the kernel it takes few calls."""

import sys
from types import FrameType
from typing import Any

import pytest
import torch

from longspan import native
from longspan.families.longformer.model import Longformer, LongformerConfig
from longspan.layout import Layout

MOST = 6
"""forward, the stack of layers, a layer, its attention, `attention`, the backend: each calls the next."""


def callers(frame: FrameType | None) -> list[str]:
    """The functions from `frame` up to Longformer.forward, without torch's way of calling a module."""
    names = []
    while frame is not None:
        if frame.f_globals["__name__"] != "torch.nn.modules.module":
            names.append(frame.f_code.co_qualname)
        if frame.f_code is Longformer.forward.__code__:
            return names
        frame = frame.f_back
    raise AssertionError("Longformer.forward called nothing")


@pytest.mark.skipif(native.core() is None, reason="the native core is not built")
def test_a_model_reaches_the_kernel_in_six_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[list[str]] = []

    def spy(*arguments: Any) -> None:
        paths.append(callers(sys._getframe(1)))

    monkeypatch.setattr(native.load(), "forward", spy)
    config = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3)
    with torch.inference_mode():
        Longformer(config).eval()(torch.arange(9), Layout.packed([9]))
    assert len(paths) == config.layers
    for path in paths:
        assert len(path) <= MOST, " <- ".join(path)
