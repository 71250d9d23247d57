"""What the encoder families share: embeddings, a stack of layers, and how their weights begin."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from longspan.engine.labels import ClippedDistance
from longspan.families.config import EncoderConfig
from longspan.families.habits import Habits, resized
from longspan.families.model_plan import ModelPlan, outside_of_graphs, packed, planned
from longspan.families.notebook import model_html
from longspan.layout import Layout, require
from longspan.nn.attention import Biases, SelfAttention
from longspan.nn.embeddings import Embeddings
from longspan.nn.encoder import EncoderLayer
from longspan.nn.feed_forward import FeedForward
from longspan.nn.layers import Layers, Room, stacks
from longspan.nn.relative import RelativeBias
from longspan.nn.rows import writes_over
from longspan.nn.sites import Rows

if TYPE_CHECKING:
    from longspan.families.seq2seq.model import Seq2SeqConfig


class Backbone(Habits):
    """A model without a head: ids (N,) of the documents of a layout to hidden states (N, C).

    In the place of the layout it takes `plan(layout)`, which is what torch.compile(fullgraph=True) needs.
    """

    config: "EncoderConfig | Seq2SeqConfig"

    @property
    def word_embeddings(self) -> nn.Embedding:
        """The table of words."""
        table = self.get_submodule(self.config.words_name.removesuffix(".weight"))
        return cast(nn.Embedding, table)

    def set_vocabulary(self, config: EncoderConfig) -> None:
        """Take a config with another number of words, and a table of that size."""
        path = self.config.words_name.removesuffix(".weight")
        owner, _, name = path.rpartition(".")
        setattr(self.get_submodule(owner), name, resized(self.word_embeddings, config.vocab_size))
        self.config = config

    def forward(self, ids: Tensor, layout: Layout | ModelPlan, token_types: Tensor | None = None) -> Tensor:
        raise NotImplementedError

    def inputs(self, layout: Layout) -> object:
        """What `forward` reads of a layout: positions, and plans for each layer."""
        raise NotImplementedError

    @outside_of_graphs
    def plan(self, layout: Layout) -> ModelPlan:
        """The layout as compiled graphs take it: everything that depends on it, in tensors."""
        device = self.word_embeddings.weight.device
        return packed(ModelPlan(Rows.of(require(layout), device), self.inputs(layout)), device)

    def given(self, layout: Layout | ModelPlan) -> object:
        """The `inputs` of a layout, or those of its plan."""
        if isinstance(layout, ModelPlan):
            return layout.inputs
        if torch.compiler.is_compiling():
            return planned(self, layout).inputs
        return self.inputs(require(layout))

    def _repr_html_(self) -> str:
        return model_html(type(self).__name__, self.config.encoder)

    @property
    def gradient_checkpointing(self) -> bool:
        """Whether only the layers' inputs are kept for the backward pass, and the rest is computed again."""
        return any(stack.gradient_checkpointing for stack in stacks(self))

    @gradient_checkpointing.setter
    def gradient_checkpointing(self, on: bool) -> None:
        for stack in stacks(self):
            stack.gradient_checkpointing = on

    def gradient_checkpointing_enable(self) -> None:
        """Keep only the layers' inputs for the backward pass, in encoder and decoder."""
        self.gradient_checkpointing = True

    def gradient_checkpointing_disable(self) -> None:
        """Keep everything for the backward pass, as usual."""
        self.gradient_checkpointing = False


class EncoderInputs(NamedTuple):
    """What an encoder reads of a layout."""

    places: Layout | Tensor
    "Where tokens stand: a layout, or the positions (N,)."
    buckets: Tensor | None
    "The bucket of each distance, where the model has biases by distance, or the biases themselves."
    layers: tuple[tuple[Any, ...], ...]
    "What each layer takes beside x and biases: its plan, and perhaps global rows and pooled keys."


class Encoder(Backbone):
    """Embeddings and a stack of layers, each around an attention of its own."""

    config: EncoderConfig
    norm_last: ClassVar[bool] = False
    "The norm of the embeddings follows dropout."

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config, like = config, config.layer_config
        self.embeddings = Embeddings(
            like,
            vocab=config.vocab_size,
            positions=config.positions if config.has_position_table else None,
            token_types=config.token_types,
            embedding_size=config.embedding_size,
            offset=config.position_offset,
            rescale=config.rescale_embeddings,
            round_scale=config.rounds_scale,
            norm=config.norms_embeddings,
            norm_last=self.norm_last,
            dropout=config.embedding_dropout,
        )
        self.layers = Layers(self.layer(number) for number in range(config.layers))
        self.relative_bias = RelativeBias(config.buckets, config.heads) if config.buckets else None
        init_weights(self, config.init_std)

    def layer(self, number: int) -> nn.Module:
        """A layer around its attention and its feed-forward block."""
        config, blocks = self.config, (self.layer_attention(number), self.layer_feed_forward(number))
        return EncoderLayer(config.layer_config, *blocks, final=number == config.layers - 1)

    def layer_feed_forward(self, layer: int) -> nn.Module:
        """The feed-forward block of a layer, plain unless a family has its own."""
        like, inner = self.config.layer_config, self.config.feed_forward
        return FeedForward(like.width, inner, like.act, dropout=like.activation_dropout)

    def layer_attention(self, layer: int) -> nn.Module:
        """The attention of a layer, plain self-attention unless a family has its own."""
        config = self.config
        return SelfAttention(config.width, config.heads, dropout=config.attention_dropout)

    def forward(
        self,
        ids: Tensor,
        layout: Layout | ModelPlan,
        token_types: Tensor | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Of `rows` alone, if they are given: what the last layer would do with others is left out."""
        places, buckets, layers = cast(EncoderInputs, self.given(layout))
        biases = self.biases(buckets)
        own = [(*own, biases) for own in layers]
        return run(self.layers, self.embeddings, (ids, places, token_types), own, rows=rows)

    def biases(self, buckets: Tensor | None) -> Biases:
        """What is added to scores, by the labels of the plans."""
        return () if self.relative_bias is None else self.relative_bias(buckets)

    def inputs(self, layout: Layout) -> EncoderInputs:
        distances = None if self.relative_bias is None else self.relative_bias.distances(self.config.reach)
        labels, buckets = (None, None) if distances is None else distances
        return EncoderInputs(self.placed(layout), buckets, tuple(self.layer_inputs(layout, labels)))

    def placed(self, layout: Layout) -> Layout:
        """The layout by which tokens have their positions."""
        return layout

    def layer_inputs(self, layout: Layout, labels: ClippedDistance | None) -> Iterable[tuple[Any, ...]]:
        """What each layer takes beside x and biases: its plan, and perhaps global rows and pooled keys."""
        specs = self.config.attention(layout, training=self.training)
        return [(spec.plan(self.config.heads, labels),) for (spec,) in specs]


def run(
    stack: Layers,
    embeddings: nn.Module,
    embedded: tuple[Any, ...],
    inputs: Sequence[tuple[Any, ...]],
    *,
    projections: int = 3,
    rows: Tensor | None = None,
) -> Tensor:
    """Embeddings (N, C) of what is `embedded` through all layers, each with its own `inputs`.

    They are made here, so that no caller holds them to the end. `projections` counts the queries, keys and
    values that a layer makes of a row. If only some `rows` are wanted, the last layer does what it does row
    by row for these.
    """
    x = embeddings(*embedded)
    room = Room(stack, embeddings, x, projections) if writes_over() else None
    for number, (layer, own) in enumerate(zip(stack, inputs, strict=True), 1):
        step: Callable[..., Tensor] = layer
        if rows is not None and number == len(stack) and isinstance(layer, EncoderLayer):
            step, rows = partial(layer, rows=rows), None
        if room is not None:
            x = step(x, *own, scratch=room.scratch_for(x))
        else:
            x = stack.checkpointed(step, x, *own) if stack.recomputes() else step(x, *own)
    x = x if room is None else room.leave(x)
    return x if rows is None else x[rows]


@contextmanager
def recorded(backbone: Backbone, wanted: bool) -> Iterator[list[Tensor]]:
    """The hidden states before and after each layer of the (first) stack, while the block runs."""
    states: list[Tensor] = []
    if not wanted:
        yield states
        return
    stack = stacks(backbone)[0]
    before = stack[0].register_forward_pre_hook(lambda layer, inputs: states.append(inputs[0]))
    after = [layer.register_forward_hook(lambda layer, inputs, y: states.append(y)) for layer in stack]
    try:
        yield states
    finally:
        for hook in (before, *after):
            hook.remove()


def init_weights(module: nn.Module, std: float) -> None:
    """Weights normal with deviation `std`, biases 0, norms 1; global projections start as the local ones."""
    for part in module.modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            nn.init.normal_(part.weight, std=std)
            if isinstance(part, nn.Linear) and part.bias is not None:
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
