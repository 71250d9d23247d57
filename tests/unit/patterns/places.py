"""Layouts on which every pattern is tried: pairs of query and key rows, awkward on purpose."""

import numpy as np

from longspan.layout import Layout

_RANDOM = np.random.default_rng(5)
_TWO = Layout.packed([37, 23], marked=[[0, 17, 36], [5]], start=[0, 11])
_HOLES = Layout.padded(_RANDOM.random((2, 31)) < 0.7, marked=_RANDOM.random((2, 31)) < 0.15)
_LONG = Layout.packed([67])
_TAGS = {"parent": 37 + _RANDOM.integers(-2, 3, 37), "paragraph": _RANDOM.integers(-1, 41, 37)}
_TAGS |= {"segment": np.arange(37) // 9, "free": np.arange(37) % 5 == 0}
_TOKENS = Layout.packed([37], tags=_TAGS)
_ABOVE = Layout.packed([3], marked=[[0, 1, 2]], start=37, tags={"segment": [0, 2, 1], "free": [0, 1, 0]})
_STREAMS = Layout.join(_TOKENS, _ABOVE)

PLACES: dict[str, tuple[Layout, Layout]] = {
    "one token": (Layout.packed([1]), Layout.packed([1])),
    "packed from a start": (_TWO, _TWO),
    "padded with holes": (_HOLES, _HOLES),
    "an empty document between": (Layout.packed([13, 0, 19]),) * 2,
    "pooled keys": (_TWO, _TWO.pool(5, 4)),
    "pooled keys of a padded batch": (_HOLES, _HOLES.pool(3, 2)),
    "marked queries only": (_TWO.take(_TWO.marked_rows), _TWO),
    "shuffled rows": (_TWO.take(_RANDOM.permutation(60)), _TWO.take(_RANDOM.permutation(60)[:41])),
    "joined": (_TWO, Layout.join(_TWO, Layout.packed([3, 2], marked=[[0, 1, 2], [0, 1]]))),
    "a step of a decoder": (Layout.packed([1], start=66), _LONG),
    "long": (_LONG, _LONG),
    "tokens of two streams": (_TOKENS, _STREAMS),
    "global tokens of two streams": (_ABOVE, _STREAMS),
}
