"""What the encoder families share: a stack of layers on embeddings, and how their weights begin."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from longspan.engine.labels import ClippedDistance
from longspan.models.config import EncoderConfig
from longspan.nn.attention import Biases, LongformerAttention, SelfAttention
from longspan.nn.embeddings import Embeddings
from longspan.nn.layer import EncoderLayer
from longspan.nn.linear import Linear
from longspan.nn.relative import RelativeBias


def embeddings(config: EncoderConfig, *, norm_last: bool = False) -> Embeddings:
    """The embeddings of a config."""
    return Embeddings(
        vocab=config.vocab_size,
        width=config.width,
        positions=config.positions,
        types=config.types,
        narrow=config.narrow,
        offset=config.position_offset,
        eps=config.norm_eps,
        dropout=config.dropout,
        scale=config.width**0.5 if config.rescale_embeddings else 1.0,
        norm=not config.norm_first,
        norm_last=norm_last,
    )


def layers(
    config: EncoderConfig, kind: type[SelfAttention | LongformerAttention], **options: Any
) -> nn.ModuleList:
    """The layers of a config, each around an attention of its own; `options` beside sizes and dropout."""
    options = {"dropout": config.attention_dropout} | options
    return nn.ModuleList(
        EncoderLayer(
            kind(config.width, config.heads, **options),
            config.width,
            config.feed_forward,
            act=config.activation,
            eps=config.norm_eps,
            dropout=config.dropout,
            activation_dropout=config.activation_dropout,
            norm_first=config.norm_first,
            closing=config.norm_first and layer == config.layers - 1,
        )
        for layer in range(config.layers)
    )


def relative_bias(config: EncoderConfig) -> RelativeBias | None:
    """The biases by distance that all layers share, None if there are none."""
    return RelativeBias(config.buckets, config.heads) if config.buckets else None


def distances(bias: RelativeBias | None, reach: int) -> tuple[ClippedDistance | None, Biases]:
    """Labels for plans and what is added by them; `reach` is how far a token sees, but for global ones."""
    return (None, ()) if bias is None else bias(reach)


def run(
    stack: nn.ModuleList, x: Tensor, seen: Sequence[tuple[Any, ...]], *, checkpointing: bool, parts: int = 3
) -> Tensor:
    """x (N, C) through all layers; with `checkpointing` only layer inputs are kept for the backward pass.

    `parts` counts the queries, keys and values that a layer makes of a row.
    """
    grad = torch.is_grad_enabled()
    scratch = None if grad else x.new_empty(len(x), parts * x.shape[1])
    for layer, given in zip(stack, seen, strict=True):
        if checkpointing and grad:
            x = cast(Tensor, checkpoint(layer, x, *given, use_reentrant=False))
        else:
            x = layer(x, *given, scratch=scratch)
    return x


def initialise(module: nn.Module, std: float) -> None:
    """Weights normal with deviation `std`, biases 0, norms 1; global projections start as the local ones."""
    for part in module.modules():
        if isinstance(part, (Linear, nn.Embedding)):
            nn.init.normal_(part.weight, std=std)
            if isinstance(part, Linear) and part.bias is not None:
                nn.init.zeros_(part.bias)
    copy_local_to_global(module)


def copy_local_to_global(module: nn.Module) -> None:
    """Start every global projection as the local one (Longformer, section 3.1)."""
    for part in module.modules():
        if isinstance(part, LongformerAttention):
            part.copy_local_to_global()
