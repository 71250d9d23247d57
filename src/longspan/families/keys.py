"""Two-way key tables: which tensors of a Hugging Face file, stacked, make up a parameter of ours."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from longspan.errors import refused

BACKBONE: dict[str, tuple[str, ...]] = {
    "embeddings.words": ("embeddings.word_embeddings",),
    "embeddings.positions": ("embeddings.position_embeddings",),
    "embeddings.types": ("embeddings.token_type_embeddings",),
    "embeddings.norm": ("embeddings.LayerNorm",),
    "embeddings.projection": ("embeddings_project",),
    "relative_bias.table": ("encoder.relative_attention_bias",),
    "layers.#.attention.qkv": (
        "encoder.layer.#.attention.self.query",
        "encoder.layer.#.attention.self.key",
        "encoder.layer.#.attention.self.value",
    ),
    "layers.#.attention.global_query": ("encoder.layer.#.attention.self.query_global",),
    "layers.#.attention.global_key": ("encoder.layer.#.attention.self.key_global",),
    "layers.#.attention.global_value": ("encoder.layer.#.attention.self.value_global",),
    "layers.#.attention.out": ("encoder.layer.#.attention.output.dense",),
    "layers.#.attention_norm": ("encoder.layer.#.attention.output.LayerNorm",),
    "layers.#.feed_forward.up": ("encoder.layer.#.intermediate.dense",),
    "layers.#.feed_forward.down": ("encoder.layer.#.output.dense",),
    "layers.#.feed_forward_norm": ("encoder.layer.#.output.LayerNorm",),
}
"""Our modules and those of most encoders; # is the number of the layer."""

WORDS = "embeddings.word_embeddings.weight"
FAMILY = "Is it a model of this family?"
OWN_PREFIX = "body."
"""What precedes the names of backbone tensors in files of our own types."""
_LAYER = re.compile(r"\blayers\.(\d+)\.")
_OLD = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
_BUFFER = re.compile(r"(.*\.)?(embeddings\.(position_ids|token_type_ids)|(en|de)coder\.version)")


@dataclass(frozen=True)
class KeyTable:
    """The names in one kind of file: the backbone's prefix, the head's modules, and which tensors are tied.

    >>> KeyTable("bert.", {"out": "classifier"}, {}).keys("backbone.layers.3.attention.out.bias")
    ('bert.encoder.layer.3.attention.output.dense.bias',)
    """

    prefix: str
    head: Mapping[str, str]
    "Our modules of the head and theirs; {backbone} stands for the prefix."
    ties: Mapping[str, str]
    "A tensor, and the one that it is tied to and that is saved in its place."
    backbone: Mapping[str, tuple[str, ...]] | None = field(default_factory=lambda: BACKBONE)
    "None: modules of the backbone have our names."

    def keys(self, name: str) -> tuple[str, ...]:
        """The tensors that our parameter `name` consists of, in the order of its rows."""
        part, _, rest = name.partition(".")
        module, _, leaf = rest.rpartition(".")
        if part == "head":
            return (self.key(self.head.get(rest) or f"{self.head[module]}.{leaf}"),)
        if self.backbone is None:
            return (f"{self.prefix}{rest}",)
        numbered = _LAYER.search(module)
        names, number = self.backbone[_LAYER.sub("layers.#.", module)], numbered[1] if numbered else ""
        return tuple(f"{self.prefix}{theirs.replace('#', number)}.{leaf}" for theirs in names)

    def find(self, key: str, present: Collection[str], *, tied: bool) -> str | None:
        """How a file spells `key`: so, by its old name, or by the name of what it is tied to."""
        partners = [self.key(b) for a, b in self.ties.items() if self.key(a) == key]
        others = [self.key(a) for a, b in self.ties.items() if self.key(b) == key]
        spellings = [*partners, key] if tied else [key, *partners]
        for name in [*spellings, *others]:
            for spelling in (name, *(name.replace(new, old) for new, old in _OLD.items() if new in name)):
                if spelling in present:
                    return spelling
        return None

    def saved(self, key: str) -> str:
        """The name that a tied tensor is saved by."""
        return next((self.key(b) for a, b in self.ties.items() if self.key(a) == key), key)

    def key(self, pattern: str) -> str:
        """A name of the table with the prefix put in."""
        return pattern.replace("{backbone}", self.prefix)


def prefix_of(present: Collection[str], place: object, words: Collection[str] = (WORDS,)) -> str:
    """The prefix of the backbone's names, such as "model.", or nothing.

    >>> prefix_of(["model.encoder.embed_tokens.weight"], "", ("shared.weight", "encoder.embed_tokens.weight"))
    'model.'
    """
    for name in words:
        tables = [key for key in present if key == name or key.endswith(f".{name}")]
        if len(tables) > 1:
            raise refused(place, "it has more than one table of word embeddings", FAMILY)
        if tables:
            return tables[0].removesuffix(name)
    raise refused(place, "it has no table of word embeddings", FAMILY)


def is_buffer(key: str) -> bool:
    """Whether it is a buffer that old files hold although it can be computed."""
    return _BUFFER.fullmatch(key) is not None
