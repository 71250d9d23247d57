"""The files of language models of bytes, which are always of our own type: only Longspan has them."""

from longspan.families.base import Family
from longspan.families.char_lm.model import CharLMConfig
from longspan.families.schema import read_own, write_own

STEPS = (32, 64, 128, 256, 384, 512)
"""How far the layers of the paper's models look back in the first phase: as many layers at each step."""


def paper(layers: int, *, dropout: float, undilated: int) -> CharLMConfig:
    """One of the paper's two sizes (Longformer, section 4.2 and table 12), with Transformer-XL's layers.

    Two of the eight heads of the upper layers skip 1, 2 and 3 characters, each in a third of them.
    """
    third = (layers - undilated) // 3
    dilation = (1,) * undilated + tuple((1,) * 6 + (step,) * 2 for step in (2, 3, 4) for _ in range(third))
    return CharLMConfig(
        layers=layers,
        radius=tuple(step for step in STEPS for _ in range(layers // len(STEPS))),
        dilation=dilation,
        dropout=dropout,
        activation_dropout=dropout,
        position_type="relative",
        closing_norm=False,
    )


SMALL = paper(12, dropout=0.2, undilated=6)
LARGE = paper(30, dropout=0.4, undilated=15)
TINY = CharLMConfig(
    width=256,
    layers=4,
    heads=4,
    feed_forward=1024,
    radius=(32, 64, 128, 256),
    dilation=(1, 1, 1, (1, 1, 2, 2)),
)
CHAR_LM = Family(
    name="CharLM",
    model_type="char-lm",
    own_type="longspan-char-lm",
    config=CharLMConfig,
    prefix="",
    heads={"Model": {}, "ForMaskedLM": {"decoder": "decoder"}},
    ties={},
    read=lambda raw: read_own(CharLMConfig, raw),
    write=write_own,
    cannot=lambda config: "a causal model of bytes",
    head_style="own",
    own_only=True,
    presets={"char-lm-tiny": TINY, "char-lm-small": SMALL, "char-lm-large": LARGE},
)
