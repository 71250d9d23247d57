"""What families share whose queries come in groups, each group with keys and values of its own."""

from dataclasses import dataclass
from typing import Any

from longspan.errors import bad, whole
from longspan.families.config import LARGEST
from longspan.families.rotary import RotaryConfig, RotaryEncoder
from longspan.nn.rotary import RotaryAttention

LAYER = "layers.#"
NAMES = {
    "embeddings.words": ("embed_tokens",),
    "layers.#.attention_norm": (f"{LAYER}.input_layernorm",),
    "layers.#.attention.qkv": tuple(f"{LAYER}.self_attn.{name}_proj" for name in "qkv"),
    "layers.#.attention.out": (f"{LAYER}.self_attn.o_proj",),
    "layers.#.feed_forward.up": (f"{LAYER}.mlp.gate_proj", f"{LAYER}.mlp.up_proj"),
    "layers.#.feed_forward.down": (f"{LAYER}.mlp.down_proj",),
    "layers.#.closing_norm": ("norm",),
}
"""What their files call the modules that they share, as Llama's do."""


@dataclass(frozen=True, kw_only=True)
class GroupedConfig(RotaryConfig):
    """Sizes of an encoder with fewer heads of keys and values than of queries, which may be of any size.

    >>> GroupedConfig(heads=6, kv_heads=2, head_dim=32).projected
    320
    """

    kv_heads: int | None = None
    "Heads of keys and values; None: as many as there are queries."
    head_dim: int | None = None
    "Size of a head; None: the width by the number of heads."

    def __post_init__(self) -> None:
        if self.kv_heads is not None:
            whole("kv_heads", self.kv_heads, 1, most=LARGEST)
        if self.head_dim is not None and whole("head_dim", self.head_dim, 1, most=LARGEST) % 2:
            raise bad("head_dim", "an even number", self.head_dim)
        super().__post_init__()
        if self.heads % self.groups:
            raise bad("kv_heads", f"a divisor of the {self.heads} heads", self.kv_heads)

    @property
    def groups(self) -> int:
        """How many heads of keys and values there are."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def head_size(self) -> int:
        return self.width // self.heads if self.head_dim is None else self.head_dim

    @property
    def projected(self) -> int:
        """Numbers that a token's queries, keys and values consist of."""
        return (self.heads + 2 * self.groups) * self.head_size


class GroupedEncoder(RotaryEncoder):
    """An encoder with such attention."""

    config: GroupedConfig

    def grouped_attention(self, bias: bool, **more: Any) -> RotaryAttention:
        """The attention of a layer; `more` is what a family adds."""
        c = self.config
        sizes: dict[str, Any] = {"kv_heads": c.groups, "head_size": c.head_size}
        return RotaryAttention(
            c.width, c.heads, bias=bias, out_bias=bias, dropout=c.attention_dropout, **sizes, **more
        )
