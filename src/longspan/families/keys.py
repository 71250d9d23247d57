"""Two-way key tables: which tensors of a Hugging Face file, stacked, are a parameter of ours."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from longspan.errors import refused

BODY: dict[str, tuple[str, ...]] = {
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
"""Our modules and theirs, the same for all families; # is the number of the layer."""

WORDS = "embeddings.word_embeddings.weight"
FAMILY = "Is it a model of this family?"
TIED = {"fill": "embeddings.words.weight", "summarise": "encoder.embeddings.words.weight"}
"""The tasks whose heads have the word embeddings for a weight, and what these are called."""
_LAYER = re.compile(r"\blayers\.(\d+)\.")
_OLD = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
_BUFFER = re.compile(r"(.*\.)?(embeddings\.(position_ids|token_type_ids)|(en|de)coder\.version)")


@dataclass(frozen=True)
class KeyTable:
    """The names of one kind of file: where its body begins, its head's modules, and which tensors are one.

    >>> KeyTable("bert.", {"out": "classifier"}, {}).keys("body.layers.3.attention.out.bias")
    ('bert.encoder.layer.3.attention.output.dense.bias',)
    """

    prefix: str
    head: Mapping[str, str]
    "Our modules of the head and theirs; {body} stands for the prefix."
    ties: Mapping[str, str]
    "A tensor, and the one that it is tied to and that is saved in its place."
    body: Mapping[str, tuple[str, ...]] | None = field(default_factory=lambda: BODY)
    "None: modules of the body are called as ours."

    def keys(self, name: str) -> tuple[str, ...]:
        """The tensors that our parameter `name` consists of, in the order of its rows."""
        part, _, rest = name.partition(".")
        module, _, leaf = rest.rpartition(".")
        if part == "head":
            return (self.key(self.head.get(rest) or f"{self.head[module]}.{leaf}"),)
        if self.body is None:
            return (f"{self.prefix}{rest}",)
        numbered = _LAYER.search(module)
        general, number = _LAYER.sub("layers.#.", module), numbered[1] if numbered else ""
        return tuple(f"{self.prefix}{theirs.replace('#', number)}.{leaf}" for theirs in self.body[general])

    def find(self, key: str, present: Collection[str], *, tied: bool) -> str | None:
        """How a file spells `key`: so, by its old name, or by the name of what it is tied to."""
        partners = [self.key(b) for a, b in self.ties.items() if self.key(a) == key]
        others = [self.key(a) for a, b in self.ties.items() if self.key(b) == key]
        wanted = [*partners, key] if tied else [key, *partners]
        for name in [*wanted, *others]:
            for spelling in (name, *(name.replace(new, old) for new, old in _OLD.items() if new in name)):
                if spelling in present:
                    return spelling
        return None

    def saved(self, key: str) -> str:
        """The name that a tied tensor is saved by."""
        return next((self.key(b) for a, b in self.ties.items() if self.key(a) == key), key)

    def key(self, pattern: str) -> str:
        """A name of the table with the prefix put in."""
        return pattern.replace("{body}", self.prefix)


def own_table(task: str, modules: Collection[str]) -> KeyTable:
    """Our own names: what Hugging Face would compute differently, it shall not find by its names either."""
    ties = {f"{task}.decoder.weight": f"{{body}}{TIED[task]}"} if task in TIED else {}
    return KeyTable("body.", {module: f"{task}.{module}" for module in modules}, ties, None)


def prefix_of(present: Collection[str], place: object, words: Collection[str] = (WORDS,)) -> str:
    """What stands before the names of the body: "bert.", "longformer.", "model.", nothing.

    >>> prefix_of(["model.encoder.embed_tokens.weight"], "", ("shared.weight", "encoder.embed_tokens.weight"))
    'model.'
    """
    for name in words:
        found = [key for key in present if key == name or key.endswith(f".{name}")]
        if len(found) > 1:
            raise refused(place, "it has more than one table of word embeddings", FAMILY)
        if found:
            return found[0].removesuffix(name)
    raise refused(place, "it has no table of word embeddings", FAMILY)


def is_buffer(key: str) -> bool:
    """Whether it is a table of numbers that old files hold though it can be counted out."""
    return _BUFFER.fullmatch(key) is not None
