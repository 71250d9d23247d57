"""What the modules of Longformer and of LED's encoder compute, which are alike but for their names."""

from typing import Any

import torch
from torch import Tensor

from longspan.engine.call import attention
from longspan.engine.plan import Plan
from longspan.families.longformer.attention import GlobalProjections, GlobalRows
from longspan.families.longformer.model import LongformerConfig
from longspan.hf.serving import Shape, bits, layout, once, serves
from longspan.nn.attention import fresh_dropout
from longspan.nn.linear import is_plain


def forward(
    self: Any,
    hidden_states: Tensor,
    attention_mask: Any = None,
    is_index_masked: Any = None,
    is_index_global_attn: Any = None,
    is_global_attn: Any = None,
    output_attentions: bool = False,
) -> tuple[Tensor, ...]:
    """What a class of ours does when it is called; where our kernels do not serve, what it inherits."""
    if serves(hidden_states) and not output_attentions:
        return (attend(self, hidden_states, is_index_masked, is_index_global_attn),)
    masks = attention_mask, is_index_masked, is_index_global_attn, is_global_attn
    inherited: Any = type(self).__base__
    output: tuple[Tensor, ...] = inherited.forward(self, hidden_states, *masks, output_attentions)
    return output


@torch.compiler.disable  # type: ignore[untyped-decorator]
def attend(module: Any, x: Tensor, masked: Tensor, marked: Tensor) -> Tensor:
    """x (B, L, C) to the context of each row (B, L, C); `masked` rows (B, L) see nothing, nor are seen."""
    heads, width = module.num_heads, module.embed_dim
    carried = all(map(is_plain, (module.key_global, module.value_global)))
    sizes = heads, width, module.one_sided_attn_window_size, carried
    pairs, rows = once(_plans, bits(~masked), bits(marked), x.shape[:2], *sizes)
    q, k, v = (
        project(x).reshape(-1, heads, width // heads)  # (B, L, C) -> (N, H, D)
        for project in (module.query, module.key, module.value)
    )
    context = attention(q, k, v, pairs, dropout=fresh_dropout(module)).flatten(1)  # (N, H, D) -> (N, C)
    apart = GlobalProjections(module.query_global, module.key_global, module.value_global, heads, module)
    return apart.write(context, x.reshape(-1, width), rows).view(x.shape)  # (N, C) -> (B, L, C)


def _plans(
    exists: bytes, marked: bytes, shape: Shape, heads: int, width: int, radius: int, carried: bool
) -> tuple[Plan, GlobalRows]:
    """The plan of the local rows, and the global rows, whose queries may be `carried` through weights."""
    config = LongformerConfig(layers=1, heads=heads, width=width, radius=radius)
    ((window, *apart),) = config.attention(layout(exists, shape, marked))
    # With a width of 0 no document has few global rows: all keys are projected.
    return window.plan(heads), GlobalRows.of(apart, heads, width if carried else 0)
