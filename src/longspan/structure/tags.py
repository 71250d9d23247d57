"""What ETC is told of the structure of a text: which sentence or paragraph each token belongs to."""

from collections.abc import Sequence

import numpy as np

from longspan.errors import bad
from longspan.models.config import EncoderConfig
from longspan.models.etc import EtcConfig
from longspan.shapes import BoolArray, IntArray
from longspan.tasks.documents import Document, Piece
from longspan.text.outlines import paragraphs, sentences
from longspan.text.tokenizer import Encoding

Columns = dict[str, IntArray]
LINKS = ("parent", "paragraph")


def outline_tags(
    config: EncoderConfig, structure: str | None, pieces: Sequence[tuple[Document, Piece]]
) -> list[Columns] | None:
    """Tags of a layout for each piece; None where the model knows of no structure or makes blocks itself."""
    if not isinstance(config, EtcConfig):
        if structure is not None:
            raise bad("structure", "None for a model without a stream of global tokens", structure)
        return None
    units = config.units if structure is None else structure
    if config.block == 0 or units == "blocks":
        return None
    known: dict[int, Columns] = {}
    for document, _ in pieces:
        if id(document) not in known:
            known[id(document)] = _columns(document.encoding, units)
    return [
        _cut(known[id(document)], piece.rows, document.marked, config.most_globals)
        for document, piece in pieces
    ]


def _columns(encoding: Encoding, units: str) -> Columns:
    """The sentence, and the paragraph, that each token belongs to, counted through both parts; -1: none."""
    made, kind = Columns(), sentences if units == "sentences" else paragraphs
    first = segment = 0
    for part, text in enumerate(encoding.texts):
        rows = np.flatnonzero(encoding.source == part)
        outline = kind(text, encoding.offsets[rows])
        for name, column in outline.tags.items():
            whole = made.setdefault(name, np.full(len(encoding), -1, np.int32))
            whole[rows] = np.where(column < 0, -1, column + (first if name in LINKS else segment))
        first += outline.words.size
        segment += 1 + int(outline.tags.get("segment", np.zeros(0)).max(initial=-1))
    return made


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
