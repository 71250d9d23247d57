"""Small models of every family, each with documents that it may read."""

from typing import Any

from longspan.families.config import EncoderConfig
from longspan.families.etc.model import EtcConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.stitched.model import StitchedConfig
from longspan.layout import Layout
from unit.families.tiny import SIZES, UNMARKED, configs

MARKED = [[0, 5, 40], [0], [], [130]]
DOCUMENTS = [67, 1, 30, 131]


def subjects() -> dict[str, EncoderConfig]:
    """Every family, and the options that change what is attended to."""
    pooled: dict[str, Any] = {"radius": 3, "wide_radius": 20, "kernel": 6, "stride": 3, "two_level": (0, 2)}
    return {
        **configs(),
        "stitched": StitchedConfig(**SIZES | {"positions": 40}, block=16, stitching=2, radius=5),
        "etc": EtcConfig(**SIZES, token_types=2, radius=7, distance=3, relative=10, block=9),
        "hard etc": EtcConfig(**SIZES, token_types=2, radius=4, block=9, hard_g2l=True, hard_l2g=True),
        "poolingformer": PoolingformerConfig(**SIZES, **pooled),
    }


def layout_of(name: str) -> Layout:
    """Documents of several lengths, marked where marks mean something to the model."""
    if name in UNMARKED:
        return Layout.packed(DOCUMENTS)
    if name == "stitched":  # its marks begin blocks
        return Layout.packed(DOCUMENTS, marked=[range(0, n, 16) for n in DOCUMENTS])
    return Layout.packed(DOCUMENTS, marked=MARKED)
