"""Tags of a layout that tell which sentence or paragraph of its text each token belongs to."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longspan.shapes import BoolArray, IntArray
from longspan.structure.outlines import paragraphs, sentences
from longspan.text.encoding import Encoding

Columns = dict[str, IntArray]
LINKS = ("parent", "paragraph")


class Stretch(NamedTuple):
    """Some tokens of a text, which are read at once."""

    encoding: Encoding
    "The whole text."
    rows: IntArray
    "Which of its tokens they are."
    marked: BoolArray
    "(tokens of the text,): those with a global token of their own."


def tags_of(units: str, most: int, stretches: Sequence[Stretch]) -> list[Columns]:
    """The tags of each stretch, where sentences or paragraphs have at most `most` global tokens."""
    known: dict[int, Columns] = {}
    for encoding, _, _ in stretches:
        if id(encoding) not in known:
            known[id(encoding)] = _columns(encoding, units)
    return [_cut(known[id(encoding)], rows, marked, most) for encoding, rows, marked in stretches]


def _columns(encoding: Encoding, units: str) -> Columns:
    """The sentence, and the paragraph, that each token belongs to, counted through both parts; -1: none."""
    columns, outline_of = Columns(), sentences if units == "sentences" else paragraphs
    first = segment = 0
    for part, text in enumerate(encoding.texts):
        rows = np.flatnonzero(encoding.source == part)
        outline = outline_of(text, encoding.offsets[rows])
        for name, column in outline.tags.items():
            whole = columns.setdefault(name, np.full(len(encoding), -1, np.int32))
            whole[rows] = np.where(column < 0, -1, column + (first if name in LINKS else segment))
        first += outline.words.size
        segment += 1 + int(outline.tags.get("segment", np.zeros(0)).max(initial=-1))
    return columns


def _cut(columns: Columns, rows: IntArray, marked: BoolArray, most: int) -> Columns:
    """The columns of some tokens; marked ones have global tokens of their own, which come first.

    Sentences without paragraphs are joined where they would be more than `most` global tokens.
    """
    own = {name: column[rows] for name, column in columns.items()}
    apart = marked[rows]
    own["parent"] = np.where(apart, -1, own["parent"])
    links = [name for name in LINKS if name in own]
    used = np.unique(np.concatenate([own[name] for name in links]))
    used = used[used >= 0]
    before, count = int(apart.sum()), used.size
    place = np.arange(count)
    room = max(1, most - before)
    if count > room and "paragraph" not in own:
        place = place * room // count
    for name in links:
        number = np.searchsorted(used, own[name])
        own[name] = np.where(own[name] < 0, -1, np.append(place, 0)[number] + before).astype(np.int32)
    own["parent"][apart] = np.arange(before)
    return own
