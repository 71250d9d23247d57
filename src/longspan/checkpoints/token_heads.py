"""Heads beside a model, in files of torch.save: read by the guarded reader, and written back as they were."""

import os
from pathlib import Path

import torch

from longspan.errors import refused
from longspan.formats.files import inside
from longspan.formats.torch_save import open_torch
from longspan.nn.token_heads import Projection, TokenHeads

SPARSE, VECTORS = "sparse_linear.pt", "colbert_linear.pt"


def is_token_head(name: str) -> bool:
    """Whether a file of that name holds such a head."""
    return name in (SPARSE, VECTORS)


def read_token_heads(folder: Path, width: int) -> TokenHeads:
    """The heads in a folder, for hidden states of `width`."""
    return TokenHeads(_read(folder, SPARSE, width, 1), _read(folder, VECTORS, width, None))


def write_token_heads(folder: Path, heads: TokenHeads) -> None:
    """The same the other way round."""
    for name, head in zip((SPARSE, VECTORS), heads, strict=True):
        if head is not None:
            torch.save({"weight": head.weight.clone(), "bias": head.bias.clone()}, folder / name)


def _read(folder: Path, name: str, width: int, rows: int | None) -> Projection | None:
    if not os.path.lexists(folder / name):
        return None
    path = inside(folder, name)
    part = open_torch(path)
    shapes = {key: shape for key, (shape, _) in part.shapes.items()}
    count = shapes.get("bias", (0,))[0] if rows is None and shapes.get("bias") else rows or 0
    wanted = {"weight": (count, width), "bias": (count,)}
    if shapes != wanted or not count:
        size = f"{'outputs' if rows is None else rows} of {width} inputs"
        raise refused(path, f"it holds {shapes}, not the weight and bias of a linear layer to {size}")
    if not all(dtype.is_floating_point for _, dtype in part.shapes.values()):
        raise refused(path, "its numbers are not floating-point")
    return Projection(part.read("weight"), part.read("bias"))
