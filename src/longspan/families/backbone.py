"""What the encoder families share: embeddings, a stack of layers, and how their weights begin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from longspan.engine.labels import ClippedDistance
from longspan.families.config import EncoderConfig
from longspan.layout import Layout
from longspan.nn.attention import Biases, SelfAttention
from longspan.nn.embeddings import Embeddings
from longspan.nn.encoder import EncoderLayer
from longspan.nn.linear import Linear
from longspan.nn.relative import RelativeBias

if TYPE_CHECKING:
    from longspan.families.seq2seq.model import Seq2SeqConfig


class Backbone(nn.Module):
    """A model without a head: ids (N,) of the documents of a layout to hidden states (N, C)."""

    config: "EncoderConfig | Seq2SeqConfig"
    gradient_checkpointing: bool = False
    "Keep only the layers' inputs for the backward pass, and compute the rest again."

    @property
    def word_embeddings(self) -> nn.Embedding:
        """The table of words."""
        table = self.get_submodule(self.config.words_name.removesuffix(".weight"))
        return cast(nn.Embedding, table)

    def forward(self, ids: Tensor, layout: Layout, token_types: Tensor | None = None) -> Tensor:
        raise NotImplementedError


def embeddings(config: EncoderConfig, *, norm_last: bool = False) -> Embeddings:
    """The embeddings of a config."""
    return Embeddings(
        vocab=config.vocab_size,
        width=config.width,
        positions=config.positions,
        token_types=config.token_types,
        embedding_size=config.embedding_size,
        offset=config.position_offset,
        eps=config.norm_eps,
        dropout=config.dropout,
        scale=config.width**0.5 if config.rescale_embeddings else 1.0,
        norm=not config.norm_first,
        norm_last=norm_last,
    )


def layers(config: EncoderConfig, attentions: Sequence[nn.Module]) -> nn.ModuleList:
    """The layers of a config, each around an attention of its own."""
    return nn.ModuleList(
        EncoderLayer(
            attention,
            config.width,
            config.feed_forward,
            act=config.activation,
            eps=config.norm_eps,
            dropout=config.dropout,
            activation_dropout=config.activation_dropout,
            norm_first=config.norm_first,
            final=config.norm_first and number == config.layers - 1,
        )
        for number, attention in enumerate(attentions)
    )


def self_attentions(config: EncoderConfig) -> list[nn.Module]:
    """Plain self-attention for each layer."""
    sizes = config.width, config.heads
    return [SelfAttention(*sizes, dropout=config.attention_dropout) for _ in range(config.layers)]


def relative_bias(config: EncoderConfig) -> RelativeBias | None:
    """The biases by distance that all layers share, None if there are none."""
    return RelativeBias(config.buckets, config.heads) if config.buckets else None


def distances(bias: RelativeBias | None, reach: int) -> tuple[ClippedDistance | None, Biases]:
    """Labels for plans, and the biases of these labels; `reach` is how far a token sees."""
    return (None, ()) if bias is None else bias(reach)


def run(
    stack: nn.ModuleList,
    x: Tensor,
    inputs: Sequence[tuple[Any, ...]],
    *,
    gradient_checkpointing: bool,
    projections: int = 3,
) -> Tensor:
    """x (N, C) through all layers, each with its own `inputs` (plans, global rows, biases).

    `projections` counts the queries, keys and values that a layer makes of a row.
    """
    grad = torch.is_grad_enabled()
    scratch = None if grad else x.new_empty(len(x), projections * x.shape[1])
    for layer, own in zip(stack, inputs, strict=True):
        if gradient_checkpointing and grad:
            x = cast(Tensor, checkpoint(layer, x, *own, use_reentrant=False))
        else:
            x = layer(x, *own, scratch=scratch)
    return x


def init_weights(module: nn.Module, std: float) -> None:
    """Weights normal with deviation `std`, biases 0, norms 1; global projections start as the local ones."""
    for part in module.modules():
        if isinstance(part, (Linear, nn.Embedding)):
            nn.init.normal_(part.weight, std=std)
            if isinstance(part, Linear) and part.bias is not None:
                nn.init.zeros_(part.bias)
    copy_local_to_global(module)


@runtime_checkable
class HasGlobalProjections(Protocol):
    """A module whose global tokens have projections of their own."""

    def copy_local_to_global(self) -> None: ...


def copy_local_to_global(module: nn.Module) -> None:
    """Start all global projections inside `module` as the local ones (Longformer, section 3.1)."""
    for part in module.modules():
        if isinstance(part, HasGlobalProjections):
            part.copy_local_to_global()
