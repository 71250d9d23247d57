"""Other people's attention, and the machine's own limits, as something to time."""

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.bench.measure import Missing, Run, Tensors, fused, with_gradients

HEADS, WIDTH = 12, 768  # of the base models


def sdpa(n: int) -> Run:
    """Dense attention: torch's F.scaled_dot_product_attention on views of the same fused tensor."""
    q, k, v = (part.transpose(0, 1)[None] for part in fused(n, 3))  # (N, H, D) -> (1, H, N, D)
    return Run(lambda: (F.scaled_dot_product_attention(q, k, v),))


def copying(size: int) -> Run:
    """Tensor.copy_ of `size` bytes; worth the bytes read and the bytes written."""
    source, target = torch.ones(size // 4), torch.zeros(size // 4)
    return Run(lambda: target.copy_(source), amount=2 * size)


def longformer(n: int, radius: int = 256, *, backward: bool = False) -> Run:
    """transformers' LongformerSelfAttention with one global token, its projections included."""
    attention = _longformer_module(radius)
    mask = torch.zeros(1, n)
    mask[:, 0] = 10_000.0  # the module's own code for a global token
    x = _hidden(n, grad=backward)

    def forward() -> Tensors:
        return attention(x, mask, mask < 0, mask > 0, True)[:1]  # type: ignore[no-any-return]

    return _run(forward, (x, *attention.parameters()), (torch.ones(x.shape),), backward)


def longformer_projections(n: int, *, backward: bool = False) -> Run:
    """The five projections of all tokens inside that module (the sixth sees the one global token only)."""
    names = ("query", "key", "value", "key_global", "value_global")
    return _projections(_longformer_module(256), names, n, backward)


def bigbird(n: int) -> Run:
    """transformers' BigBirdBlockSparseAttention of the base model in evaluation, projections included."""
    attention, x = _bigbird_module(), _hidden(n)
    from transformers import BigBirdModel

    masks = BigBirdModel.create_masks_for_block_sparse_attn(torch.ones(1, n), block_size=64)
    blocks, band, rows, columns = masks
    return Run(lambda: attention(x, band, rows, columns, blocks, blocks))


def bigbird_projections(n: int) -> Run:
    """The three projections inside that module."""
    return _projections(_bigbird_module(), ("query", "key", "value"), n, backward=False)


def flex(n: int, radius: int = 256) -> Run:
    """torch's FlexAttention, compiled for the CPU, with the same window and one global token."""
    if not shutil.which(os.environ.get("CXX", "g++")):
        raise Missing("FlexAttention needs a C++ compiler at run time")
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def allowed(_batch: Tensor, _head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return ((q - k).abs() <= radius) | (q == 0) | (k == 0)

    blocks = create_block_mask(allowed, None, None, n, n, device="cpu")
    q, k, v = (part.transpose(0, 1)[None] for part in fused(n, 3))  # (N, H, D) -> (1, H, N, D)
    compiled = torch.compile(flex_attention)
    try:
        with torch.no_grad():
            compiled(q, k, v, block_mask=blocks)
    except Exception as error:  # whatever the compiler says, the other cases go on
        raise Missing(f"FlexAttention does not compile here: {str(error).splitlines()[0]}") from error
    return Run(lambda: compiled(q, k, v, block_mask=blocks))


def _hidden(n: int, *, grad: bool = False) -> Tensor:
    return torch.randn(1, n, WIDTH, generator=torch.Generator().manual_seed(0)).requires_grad_(grad)


def _run(forward: Callable[[], Tensors], inputs: Tensors, upstream: Tensors, backward: bool) -> Run:
    return Run(with_gradients(forward, inputs, upstream) if backward else forward, grad=backward)


def _projections(attention: nn.Module, names: tuple[str, ...], n: int, backward: bool) -> Run:
    layers = [attention.get_submodule(name) for name in names]
    weights = [weight for layer in layers for weight in layer.parameters()]
    x = _hidden(n, grad=backward)

    def forward() -> Tensors:
        return tuple(layer(x) for layer in layers)

    return _run(forward, (x, *weights), (torch.ones(x.shape),) * len(layers), backward)


def _longformer_module(radius: int) -> nn.Module:
    """One layer of longformer-base with random weights (attention_window counts both sides)."""
    need_transformers()
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    module: nn.Module = LongformerSelfAttention(LongformerConfig(attention_window=[2 * radius]), layer_id=0)
    return module.eval()


def _bigbird_module() -> nn.Module:
    need_transformers()
    from transformers import BigBirdConfig
    from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention

    module: nn.Module = BigBirdBlockSparseAttention(BigBirdConfig(), seed=0)
    return module.eval()


def need_transformers() -> None:
    """Missing, unless transformers is installed."""
    if not find_spec("transformers"):
        raise Missing("transformers is not installed")
