"""What the configs of all encoders have in common."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from torch import nn

from longspan.errors import bad, number, one_of, whole
from longspan.families.attention_spec import LayerSpecs
from longspan.layout import Layout
from longspan.nn.activations import activation
from longspan.nn.encoder import LayerConfig
from longspan.nn.rope import RopeParameters

if TYPE_CHECKING:
    from longspan.families.backbone import Backbone

LARGEST = 2**24
"""No size of a model may exceed this: a config is data from anywhere."""
MOST_BUCKETS = 256
HEAD_STYLES = ("bert", "roberta", "bigbird", "own")
GlobalTokenUse = Literal["none", "on request", "by task"]
Rule = Literal["none", "first", "question", "choice", "separators", "all"]
"""Which tokens are global; longspan.pipeline.global_tokens says what each means."""


class Blocks(NamedTuple):
    """How a document is cut where it is read block by block."""

    size: int
    "Tokens of a block, special tokens included."
    most: int
    "Tokens of the longest block."


class Units(NamedTuple):
    """What of a text gets a global token of its own."""

    kind: str
    "sentences, paragraphs or blocks"
    most: int
    "Global tokens of a document; 0: there are none."


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Sizes of an encoder; families add what they attend to and override what is special about them."""

    family: ClassVar[str] = ""
    "The family's name as people write it."
    has_decoder: ClassVar[bool] = False
    decoder_offset: ClassVar[int | None] = None
    "Rows before position 0 in both position tables, where a decoder follows; None: as the source has it."
    extends_with_pooling: ClassVar[bool] = False
    "A trained model of the family can get pooled attention in some layers."
    separate_head_dropout: ClassVar[bool] = True
    "Checkpoints may give the head a dropout rate of its own (`classifier_dropout`)."

    has_position_table: ClassVar[bool] = True
    "Positions are embeddings; else scores alone depend on them."

    rounds_scale: ClassVar[bool] = False
    "What rescales the embeddings is rounded to their type."

    words_name: ClassVar[str] = "embeddings.words.weight"
    "The parameter that holds the word embeddings."
    mark_name: ClassVar[str] = "global token"
    "What a marked token means."

    vocab_size: int = 50265
    width: int = 768
    "Size of the hidden states; a multiple of `heads`."
    layers: int = 12
    heads: int = 12
    feed_forward: int = 3072
    positions: int = 4096
    "Tokens of the longest document."
    position_offset: int = 0
    "Rows of the position table before position 0."
    token_types: int = 1
    "Segments told apart by an embedding; 0: there is no such table."
    embedding_size: int | None = None
    "Size of the embeddings, if they are projected to `width`; None: `width`."
    buckets: int = 0
    "Buckets of relative distances, each with a bias per head shared by all layers (T5's scheme); 0: none."
    activation: str = "gelu"
    head_activation: str = "usual"
    'Activation inside the head; "usual" is what `head_style` has there.'
    head_style: str = "bert"
    """Whose heads it has. "roberta": the classifier drops its input too, and words are decoded through gelu;
    "bigbird": a deep span head, and classification through the model's own activation; "own": the family has
    its own."""
    norm_first: bool = False
    """Pre-norm: norms before the blocks, one after the last, none after the embeddings; else post-norm."""
    rescale_embeddings: bool = False
    "Word embeddings are multiplied by the square root of the width."
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.0
    "Inside feed-forward blocks."
    norm_eps: float = 1e-5
    init_std: float = 0.02
    pad_id: int = 0

    def __post_init__(self) -> None:
        for name in ("vocab_size", "width", "heads", "feed_forward", "positions"):
            whole(name, getattr(self, name), 1, most=LARGEST)
        whole("layers", self.layers, 1, most=1024)
        for name in ("position_offset", "pad_id", "token_types", "buckets"):
            whole(name, getattr(self, name), 0, most=LARGEST)
        if self.width % self.heads:
            raise bad("width", f"a multiple of the {self.heads} heads", self.width)
        if self.embedding_size is not None:
            whole("embedding_size", self.embedding_size, 1, most=LARGEST)
        if self.buckets % 4 or self.buckets > MOST_BUCKETS:
            raise bad("buckets", f"a multiple of 4, at most {MOST_BUCKETS}", self.buckets)
        if self.pad_id >= self.vocab_size:
            raise bad("pad_id", f"less than the vocabulary, {self.vocab_size}", self.pad_id)
        activation(self.activation)
        if self.head_activation != "usual":
            activation(self.head_activation)
        one_of("head_style", self.head_style, HEAD_STYLES)
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            number(name, getattr(self, name), 0.0, 1.0, below=True)
        number("norm_eps", self.norm_eps, 1e-20, 1.0)
        number("init_std", self.init_std, 0.0, 100.0)

    def backbone(self) -> "Backbone":
        """A new model of this config, without a head."""
        raise NotImplementedError

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        """What each layer attends to in the documents of a layout."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, object]:
        """All fields by name."""
        return asdict(self)

    def own_head(self, architecture: str, outputs: int, words: nn.Embedding) -> nn.Module | None:
        """A head that only this family has, for a class of Hugging Face; None: the usual one.

        It gives so many `outputs`, or decodes with the embeddings of `words`.
        """
        return None

    @property
    def angles(self) -> RopeParameters | None:
        """How queries and keys are turned by their positions, in layers that see all; None: they are not."""
        return None

    @property
    def head_size(self) -> int:
        """Size of a query."""
        return self.width // self.heads

    @property
    def encoder(self) -> "EncoderConfig":
        """The part that reads: itself, where no decoder follows."""
        return self

    @property
    def layer_config(self) -> LayerConfig:
        """What its layers have in common."""
        dropouts = self.dropout, self.activation_dropout
        return LayerConfig(self.width, self.activation, self.norm_eps, *dropouts, self.norm_first)

    @property
    def norms_embeddings(self) -> bool:
        """Whether a norm follows the embeddings."""
        return not self.norm_first

    @property
    def embedding_dropout(self) -> float:
        """The dropout of embeddings."""
        return self.dropout

    @property
    def stacks(self) -> dict[str, int]:
        """Prefixes of layer names, and how many layers each stack has."""
        return {"": self.layers}

    @property
    def longest(self) -> int:
        """Tokens that are read at once."""
        return self.positions

    @property
    def exact_up_to(self) -> int:
        """The longest document on which it computes what full attention would."""
        return self.positions

    @property
    def reach(self) -> int:
        """How far a token sees, and its distance to another is told."""
        return self.exact_up_to

    @property
    def full_attention(self) -> bool:
        """Every token sees every other: a short model, which can be lengthened."""
        return False

    @property
    def global_tokens(self) -> GlobalTokenUse:
        """Whether users may name global tokens, and whether the task names them if users do not."""
        return "none"

    @property
    def reading_blocks(self) -> Blocks | None:
        """How documents are cut, if they are read block by block."""
        return None

    @property
    def global_units(self) -> Units | None:
        """What of a text has a global token, if the family has a stream of them."""
        return None

    @property
    def pools_by_sif(self) -> bool:
        """Whether the model holds a weight for each word, to be used in the mean that is a text's vector."""
        return False

    def marks_by_task(self, layout: Layout) -> bool:
        """Whether the task says which tokens of a layout are global, as nobody else has said it."""
        return layout.default_marks and self.global_tokens == "by task"

    def usual_marks(self, length: int) -> Iterable[int]:
        """The tokens that are marked in a document of that length, if nobody says otherwise."""
        return ()

    @property
    def head_drops_input(self) -> bool:
        """Whether dropout precedes the dense layer of a classifier, too."""
        return self.head_style != "bert"

    @property
    def deep_span_head(self) -> bool:
        """Whether answers are found by one more feed-forward block, behind which the question is hidden."""
        return self.head_style == "bigbird"

    def reads_token_types(self, architecture: str) -> bool:
        """Whether the model is told which segment a token belongs to."""
        answers = architecture == "ForQuestionAnswering"  # a deep span head knows the question by its type
        return self.token_types > 1 and (answers or not self.deep_span_head)

    def activation_in_head(self, architecture: str) -> str:
        """The activation after the dense layer of a head.

        >>> EncoderConfig(head_style="bigbird").activation_in_head("ForSequenceClassification")
        'gelu'
        """
        if self.head_activation != "usual":
            return self.head_activation
        if architecture == "ForMaskedLM":
            return "gelu" if self.head_style == "roberta" else self.activation
        deep = self.deep_span_head and architecture == "ForSequenceClassification"
        return self.activation if deep else "tanh"
