"""ETC's labels, number by number."""

import numpy as np
import pytest

from longspan.engine.relations import Relations
from longspan.errors import InputError
from longspan.layout import Layout

LONG = Layout.packed(
    [5], tags={"parent": [5, 5, 6, 6, -1], "paragraph": [7, 7, 7, -1, -1], "linked": [-1, 6, -1, -1, 7]}
)
ABOVE = Layout.packed([3], start=5, marked=[[0, 1, 2]], tags={"segment": [0, 0, 1]})
BOTH = Layout.join(LONG, ABOVE)


def labels(queries: Layout, keys: Layout) -> list[list[int]]:
    found = Relations(distance=2, size=9).label(queries.sites[:, None], keys.sites[None, :])
    return [row.tolist() for row in found]


def test_tokens_are_told_distances_and_whom_they_belong_to() -> None:
    assert labels(LONG, BOTH) == [
        [0, 1, 2, 2, 2, 6, 5, 6],
        [3, 0, 1, 2, 2, 6, 6, 6],
        [4, 3, 0, 1, 2, 5, 6, 6],
        [4, 4, 3, 0, 1, 5, 6, 5],
        [4, 4, 4, 3, 0, 5, 5, 6],
    ]


def test_global_tokens_are_told_distances_inside_their_segment_and_who_belongs_to_them() -> None:
    assert labels(ABOVE, BOTH) == [
        [6, 6, 5, 5, 5, 0, 1, 7],
        [5, 6, 6, 6, 5, 3, 0, 7],
        [6, 6, 6, 5, 6, 7, 7, 0],
    ]


def test_labels_of_a_batch_of_tiles_are_those_of_all_pairs() -> None:
    q, k = ABOVE.sites, BOTH.sites
    tiles = Relations(2, 9).label(q[np.arange(3)[:, None]][:, :, None], k[np.arange(8)[None]][:, None, :])
    assert tiles[:, 0].tolist() == labels(ABOVE, BOTH)


def test_labels_without_room_are_an_error() -> None:
    with pytest.raises(InputError, match=r"`size` must be at least 8, but is 7\. There are 2"):
        Relations(2, 7)
    with pytest.raises(InputError, match="`distance` must be at least 1"):
        Relations(0, 7)
