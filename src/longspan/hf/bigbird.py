"""BigBird's block-sparse attention in transformers, with Longspan's kernels."""

from typing import Any

import torch
from torch import Tensor
from transformers.models.big_bird import modeling_big_bird as theirs

from longspan.engine.call import attention
from longspan.engine.plan import Plan, plan
from longspan.families.bigbird.model import BigBirdConfig
from longspan.hf.serving import Shape, bits, layout, once, said, serves


class BigBirdBlockSparseAttention(theirs.BigBirdBlockSparseAttention):  # type: ignore[misc]
    """Named as what it takes the place of: some of transformers goes by names of classes."""

    IS_LAYER = False

    def forward(
        self,
        hidden_states: Tensor,
        band_mask: Any = None,
        from_mask: Any = None,
        to_mask: Any = None,
        from_blocked_mask: Any = None,
        to_blocked_mask: Any = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        drawn_anew = self.training and self.seed is None
        if serves(hidden_states) and not kwargs.get("output_attentions") and not drawn_anew:
            return _attend(self, hidden_states, to_mask), None
        masks = band_mask, from_mask, to_mask, from_blocked_mask, to_blocked_mask
        output: tuple[Tensor, Tensor] = super().forward(hidden_states, *masks, **kwargs)
        return output

    extra_repr = said


class BigBirdAttention(theirs.BigBirdAttention):  # type: ignore[misc]
    """Gets another inner module when the model turns to another type of attention: that is ours, too."""

    IS_LAYER = True

    def set_attention_type(self, value: str, layer_idx: int | None = None) -> None:
        super().set_attention_type(value, layer_idx)
        if type(self.self) is theirs.BigBirdBlockSparseAttention:
            self.self.__class__ = BigBirdBlockSparseAttention

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Any = None,
        encoder_hidden_states: Any = None,
        encoder_attention_mask: Any = None,
        past_key_values: Any = None,
        band_mask: Any = None,
        from_mask: Any = None,
        to_mask: Any = None,
        from_blocked_mask: Any = None,
        to_blocked_mask: Any = None,
        **kwargs: Any,
    ) -> Any:
        # The config may ask for probabilities, too, and the inner module does not see it.
        kwargs.setdefault("output_attentions", self.config.output_attentions)
        before = attention_mask, encoder_hidden_states, encoder_attention_mask, past_key_values
        masks = band_mask, from_mask, to_mask, from_blocked_mask, to_blocked_mask
        return super().forward(hidden_states, *before, *masks, **kwargs)


CLASSES = (BigBirdBlockSparseAttention, BigBirdAttention)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _attend(module: Any, x: Tensor, mask: Tensor) -> Tensor:
    """x (B, L, C) to the context of each row (B, L, C); rows whose `mask` is 0 see nothing, nor are seen."""
    heads, size = module.num_attention_heads, module.attention_head_size
    draws = module.block_size, module.num_random_blocks, module.max_seqlen, module.seed or 0, module.training
    pairs = once(_plan, bits(mask), x.shape[:2], heads, heads * size, *draws)
    q, k, v = (
        project(x).reshape(-1, heads, size)  # (B, L, C) -> (N, H, D)
        for project in (module.query, module.key, module.value)
    )
    return attention(q, k, v, pairs).view(*x.shape[:2], heads * size)  # (N, H, D) -> (B, L, C)


def _plan(
    exists: bytes,
    shape: Shape,
    heads: int,
    width: int,
    block: int,
    random: int,
    table: int,
    seed: int,
    training: bool,
) -> Plan:
    config = BigBirdConfig(
        heads=heads, width=width, block=block, random_blocks=random, positions=table, full_up_to=0
    )
    return plan(config.pattern(seed, training=training), layout(exists, shape), heads=heads)
