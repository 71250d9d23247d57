"""A document as blocks, each between special tokens of its own."""

import numpy as np

from longspan.shapes import BoolArray
from longspan.text.encoding import Encoding
from longspan.text.passages import split


def in_blocks(encoding: Encoding, block: int, whole: int) -> tuple[Encoding, BoolArray]:
    """The tokens with a frame around every block of at most `block` tokens, and which of them begin one.

    The frame is what stands first and last already, such as [CLS] and [SEP]. A text, or its pair, that fits
    into a block of `whole` tokens is not cut; others are, where the text is best cut.
    """
    before, behind = (int(encoding.ids[i]) if encoding.source[i] < 0 else None for i in (0, -1))
    frame = [token for token in (behind, before) if token is not None]
    cuts = [cut for part in (0, 1) for cut in _cuts(encoding, part, block - len(frame), whole - len(frame))]
    places = np.repeat(np.array(cuts, np.int64), len(frame))
    starts = np.array(cuts, np.int64) + (np.arange(len(cuts)) + 1) * len(frame) - (before is not None)
    begins = np.zeros(len(encoding) + len(places), bool)
    begins[[0, *starts]] = True
    framed = Encoding(
        np.insert(encoding.ids, places, np.tile(np.array(frame, np.int64), len(cuts))),
        np.insert(encoding.types, places, encoding.types[places]),
        np.insert(encoding.offsets, places, 0, axis=0),
        np.insert(encoding.source, places, -1),
        encoding.texts,
    )
    return framed, begins


def _cuts(encoding: Encoding, part: int, most: int, whole: int) -> list[int]:
    """The tokens of a part before which it is cut."""
    rows = np.flatnonzero(encoding.source == part)
    if rows.size <= whole:
        return []
    passages = split(encoding.texts[part], encoding.offsets[rows], most)
    return [int(rows[passage.first]) for passage in passages[1:]]
