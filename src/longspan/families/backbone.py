"""What the encoder families share: embeddings, a stack of layers, and how their weights begin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, runtime_checkable

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


class Encoder(Backbone):
    """Embeddings and a stack of layers, each around an attention of its own."""

    config: EncoderConfig
    norm_last: ClassVar[bool] = False
    "The norm of the embeddings follows dropout."

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config, like, last = config, config.layer_config, config.layers - 1
        self.embeddings = Embeddings(
            like,
            vocab=config.vocab_size,
            positions=config.positions,
            token_types=config.token_types,
            embedding_size=config.embedding_size,
            offset=config.position_offset,
            rescale=config.rescale_embeddings,
            norm_last=self.norm_last,
        )
        attentions = [self.layer_attention(layer) for layer in range(config.layers)]
        self.layers = nn.ModuleList(
            EncoderLayer(like, attention, config.feed_forward, final=layer == last)
            for layer, attention in enumerate(attentions)
        )
        self.relative_bias = RelativeBias(config.buckets, config.heads) if config.buckets else None
        init_weights(self, config.init_std)

    def layer_attention(self, layer: int) -> nn.Module:
        """The attention of a layer, plain self-attention unless a family has its own."""
        config = self.config
        return SelfAttention(config.width, config.heads, dropout=config.attention_dropout)

    def forward(self, ids: Tensor, layout: Layout, token_types: Tensor | None = None) -> Tensor:
        x, inputs = self.embeddings(ids, self.placed(layout), token_types), self.layer_inputs(layout)
        return run(self.layers, x, inputs, gradient_checkpointing=self.gradient_checkpointing)

    def placed(self, layout: Layout) -> Layout:
        """The layout by which tokens have their positions."""
        return layout

    def layer_inputs(self, layout: Layout) -> Sequence[tuple[Any, ...]]:
        """What each layer takes beside x: its plan, and perhaps global rows and biases."""
        config, (labels, biases) = self.config, self.distances(self.config.exact_up_to)
        specs = config.attention(layout, training=self.training)
        return [(spec.plan(config.heads, labels), biases) for (spec,) in specs]

    def distances(self, reach: int) -> tuple[ClippedDistance | None, Biases]:
        """Labels for plans, and the biases of these labels; `reach` is how far a token sees."""
        return (None, ()) if self.relative_bias is None else self.relative_bias(reach)


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
