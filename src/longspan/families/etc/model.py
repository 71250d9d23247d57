"""ETC and BigBird-ETC: long documents with global tokens for their structure (Ainslie et al. 2020).

A document is read in two streams: its tokens, and global tokens, each for a sentence, a paragraph, a
candidate or a block (`longspan.structure`). Tokens see a window and the global tokens, which see all.
Scores are told how far apart two tokens of one stream are, and which token belongs to which global one.
BigBird-ETC (Zaheer et al. 2020) is the same model with other sizes.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, cast

from torch import Tensor

from longspan.engine.relations import Relations
from longspan.errors import bad, one_of, whole
from longspan.families import backbone
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.backbone import Backbone
from longspan.families.config import LARGEST, EncoderConfig, GlobalTokenUse, Units
from longspan.families.etc.embeddings import StreamEmbeddings, StreamRows
from longspan.families.etc.layers import PROJECTIONS, SHARING, StreamPlans, TwoStreamLayer
from longspan.families.model_plan import ModelPlan
from longspan.layout import Layout
from longspan.nn.layers import Layers
from longspan.patterns import Belongs, Full, SameTag, ToGlobal, Window
from longspan.patterns.belongs import LINKS
from longspan.structure.structure import SEGMENT, Structure, Words

UNITS = ("sentences", "paragraphs", "blocks")
LONGEST = 1 << 16
"""Tokens that are read at once where no table of positions runs out, for the sake of memory."""
LARGE = {"layers": 24, "width": 1024, "heads": 16, "feed_forward": 4096}
SENTENCEPIECES = {"vocab_size": 50358, "question_id": 41, "paragraph_id": 43}


@dataclass(frozen=True, kw_only=True)
class EtcConfig(EncoderConfig):
    """Sizes of BERT, what the streams see of each other and which weights they share.

    >>> EtcConfig().longest, EtcConfig(absolute=True).longest
    (65536, 4096)
    """

    family: ClassVar[str] = "Etc"

    vocab_size: int = 30522
    token_types: int = 16
    activation: str = "gelu_new"
    norm_eps: float = 1e-12
    absolute: bool = False
    "Whether tokens are told their position in the document, from a table of `positions` rows."
    radius: int = 84
    "Tokens seen on each side."
    distance: int = 12
    "How far apart tokens of a stream are told to be at most; 0: nothing is told of pairs."
    relative: int = 32
    "Labels of pairs that have weights, at least 2 * distance + 4; 0: none."
    sharing: str = "all"
    """Which queries, keys and values have projections in common: "all", "sides" (all that tokens see, and all
    that global tokens see) or "none"."""
    share_out: bool = False
    "Whether the output projection is the same for both streams."
    share_feed_forward: bool = True
    hard_g2l: bool = False
    "Global tokens see only those tokens that belong to them."
    hard_l2g: bool = False
    "Tokens see only those global tokens that they belong to."
    flat: bool = False
    "Structure is ignored but for parents: no segments, no paragraphs."
    block: int = 27
    "Tokens for each global token where a document has no structure; 0: no global tokens."
    most_globals: int = 256
    "Global tokens of a document without structure: in a longer one blocks grow."
    units: str = "sentences"
    'What of a text a Reader gives a global token: "sentences", "paragraphs" (with sentences) or "blocks".'
    long_type: int = 1
    "The type of tokens where none is given."
    global_type: int = 0
    sentence_id: int = 1
    "What global tokens are in the vocabulary: for a sentence or a block,"
    question_id: int = 3
    "for a marked token,"
    paragraph_id: int = 5
    "and for a paragraph."

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("token_types", "radius", "most_globals"):
            whole(name, getattr(self, name), 1)
        for name in ("distance", "block"):
            whole(name, getattr(self, name), 0)
        whole("relative", self.relative, 0, most=LARGEST)
        one_of("sharing", self.sharing, SHARING)
        one_of("units", self.units, UNITS)
        if self.buckets:
            raise bad("buckets", "0 in an ETC", self.buckets, "It has labels of its own: see `distance`.")
        for name in ("norm_first", "rescale_embeddings", "activation_dropout"):
            if getattr(self, name):
                raise bad(name, "left out in an ETC, which has no such thing", getattr(self, name))
        for name in ("long_type", "global_type"):
            whole(name, getattr(self, name), 0, most=self.token_types - 1)
        for name in ("sentence_id", "question_id", "paragraph_id"):
            whole(name, getattr(self, name), 0, most=self.vocab_size - 1)
        if self.distance and 0 < self.relative < (least := 2 * self.distance + 4):
            raise bad("relative", f"at least {least} for a distance of {self.distance}", self.relative)

    @property
    def longest(self) -> int:
        return self.positions if self.absolute else LONGEST

    @property
    def labels(self) -> Relations | None:
        """What pairs of tokens are to each other, None if it is not told."""
        return Relations(self.distance, self.relative) if self.distance and self.relative else None

    def structure(self, layout: Layout) -> Structure:
        """The streams of a layout: by its tags, or else in blocks."""
        words = Words(sentence=self.sentence_id, question=self.question_id, paragraph=self.paragraph_id)
        return Structure.read(layout, block=self.block, most=self.most_globals, words=words)

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        specs = self.stream_specs(self.structure(layout))
        return (tuple(spec for spec in specs if spec.queries.size),) * self.layers

    def stream_specs(self, structure: Structure) -> tuple[AttentionSpec, AttentionSpec]:
        """What tokens see, a window inside their segment and global tokens; and what global tokens see."""
        used, near = structure.flat() if self.flat else structure, Window(self.radius) & SameTag(SEGMENT)
        seen = (near | ToGlobal()) & Belongs() if self.hard_l2g else near | ToGlobal()
        tokens = AttentionSpec.within("tokens", seen, used.joined)
        top = AttentionSpec.within("global tokens", Belongs() if self.hard_g2l else Full(), used.joined)
        return replace(tokens, queries=used.long), replace(top, queries=used.globals)

    @property
    def exact_up_to(self) -> int:
        return self.radius + 1

    @property
    def global_tokens(self) -> GlobalTokenUse:
        return "by task" if self.block else "none"

    def marks_by_task(self, layout: Layout) -> bool:
        # Where tags tell which token belongs to which global one, they tell it of every token.
        return super().marks_by_task(layout) and not any(name in layout.sites.tags for name in LINKS)

    @property
    def global_units(self) -> Units | None:
        return Units(self.units, self.most_globals if self.block else 0)

    def reads_token_types(self, architecture: str) -> bool:
        # Its own types are not BERT's segments, unless it was made from a BERT.
        return self.long_type == 0 and super().reads_token_types(architecture)

    def backbone(self) -> "Etc":
        return Etc(self)


def etc_base(**changes: Any) -> EtcConfig:
    """ETC-base as its paper has it; `changes` are fields with other values.

    >>> etc_base(flat=True).radius
    84
    """
    usual: dict[str, Any] = {"sharing": "none", "hard_g2l": True}
    return EtcConfig(**usual | changes)


def etc_large(**changes: Any) -> EtcConfig:
    """ETC-large."""
    return etc_base(**LARGE | {"radius": 169, "distance": 24, "relative": 52} | changes)


def bigbird_etc_base(**changes: Any) -> EtcConfig:
    """BigBird-ETC-base: blocks of 84, a window of 3 of them, 256 global tokens, another vocabulary."""
    return etc_base(**SENTENCEPIECES | changes)


def bigbird_etc_large(**changes: Any) -> EtcConfig:
    """BigBird-ETC-large: blocks of 169."""
    return etc_large(**SENTENCEPIECES | changes)


class Streams(NamedTuple):
    """The hidden states of both streams."""

    long: Tensor
    "(N, C)"
    globals: Tensor
    "(G, C)"
    structure: Structure


class StreamInputs(NamedTuple):
    """What the model reads of a layout."""

    rows: StreamRows
    plans: StreamPlans


class Etc(Backbone):
    """ids (N,) of the documents of a layout to hidden states (N, C), those of the long stream.

    Structure is read off the tags of the layout. Without any, each marked token has its own global token, and
    so has each block of the others.

    >>> import torch
    >>> tiny = EtcConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3, block=4)
    >>> model = Etc(tiny).eval()
    >>> model(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    >>> model.streams(torch.arange(9), Layout.packed([5, 4])).globals.shape
    torch.Size([3, 8])
    """

    config: EtcConfig

    def __init__(self, config: EtcConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = StreamEmbeddings(config)
        self.layers = Layers(TwoStreamLayer(config) for _ in range(config.layers))
        backbone.init_weights(self, config.init_std)

    def forward(self, ids: Tensor, layout: Layout | ModelPlan, token_types: Tensor | None = None) -> Tensor:
        return self._read(ids, cast("StreamInputs", self.given(layout)), token_types)[: ids.shape[0]]

    def inputs(self, layout: Layout) -> "StreamInputs":
        return self._inputs(self.config.structure(layout))

    def _inputs(self, structure: Structure) -> "StreamInputs":
        config = self.config
        specs = config.stream_specs(structure)
        plans = StreamPlans(*(spec.plan(config.heads, config.labels) for spec in specs))
        return StreamInputs(self.embeddings.rows(structure), plans)

    def _read(self, ids: Tensor, inputs: "StreamInputs", token_types: Tensor | None) -> Tensor:
        """Both streams, (N + G, C)."""
        own = [(inputs.plans, ids.shape[0])] * self.config.layers
        count = PROJECTIONS[self.config.sharing]
        return backbone.run(
            self.layers, self.embeddings, (ids, inputs.rows, token_types), own, projections=count
        )

    def streams(
        self,
        ids: Tensor,
        layout: Layout,
        structure: Structure | None = None,
        token_types: Tensor | None = None,
    ) -> Streams:
        """Both streams; `structure` says what the layout's tags cannot: which global tokens there are."""
        used = self.config.structure(layout) if structure is None else structure
        if used.long.size != layout.size or used.long.documents != layout.documents:
            raise bad("structure", f"of the {layout.size} tokens of the layout", used.long.size)
        x = self._read(ids, self._inputs(used), token_types)
        return Streams(x[: layout.size], x[layout.size :], used)
