"""From encodings to what a model reads: whole documents, or pieces of those that are too long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from longspan.errors import bad
from longspan.models.bert import BertConfig
from longspan.models.etc import EtcConfig
from longspan.models.longformer import LongformerConfig
from longspan.models.mpnet import MPNetConfig
from longspan.models.stitched import StitchedConfig
from longspan.models.task import TaskModel
from longspan.shapes import BoolArray, FloatArray, IntArray
from longspan.tasks.options import Options
from longspan.tasks.table import Task
from longspan.text.blocks import in_blocks
from longspan.text.marking import Globals
from longspan.text.packing import windows
from longspan.text.tokenizer import Encoding

NO_TOKENS = "Use a tokenizer that adds special tokens."


class Reading(NamedTuple):
    """What was read of a document."""

    n_tokens: int
    "Tokens that the model saw, special tokens included, overlaps counted once."
    truncated: int
    "Tokens that it did not see."
    windows: int
    "How many pieces it was read in."


class Found(list[Any]):
    """A list of findings in one document that also says what was read of it.

    >>> Found([{"word": "Rome"}], Reading(12, 0, 1)).n_tokens
    12
    """

    def __init__(self, findings: Sequence[Any], reading: Reading) -> None:
        super().__init__(findings)
        self.n_tokens, self.truncated, self.windows = reading


class Piece(NamedTuple):
    """What the model reads at once."""

    rows: IntArray
    "The tokens of the document that it holds."
    owned: BoolArray
    "For which of them it speaks: those that lie more centrally here than in any other piece."


@dataclass(frozen=True, eq=False)
class Document:
    """The tokens of one input, and the pieces in which they are read."""

    encoding: Encoding
    marked: BoolArray
    pieces: list[Piece]

    @property
    def reading(self) -> Reading:
        seen = sum(int(piece.owned.sum()) for piece in self.pieces)
        return Reading(seen, len(self.encoding) - seen, len(self.pieces))

    def result(self, found: Sequence[dict[str, Any]], *, alone: bool) -> Any:
        """All findings, or the first one `alone`, with what was read."""
        return found[0] | self.reading._asdict() if alone else Found(found, self.reading)

    def joined(self, found: Sequence[FloatArray]) -> tuple[IntArray, FloatArray]:
        """The tokens that were read, and what the pieces found for them."""
        rows = np.concatenate([piece.rows[piece.owned] for piece in self.pieces])
        values = np.concatenate([value[piece.owned] for piece, value in zip(self.pieces, found, strict=True)])
        order = np.argsort(rows)
        return rows[order], values[order]


def prepared(
    model: TaskModel, task: Task, names: Sequence[str], encodings: Sequence[Encoding], options: Options
) -> list[Document]:
    """Encodings, called `names` in errors, as documents that the model can read."""
    config, longest = model.config, model.longest
    limit = longest if options.limit is None else options.limit
    if limit > longest:
        raise bad("limit", f"at most {longest}, what the model reads at once", limit)
    if options.overflow == "window" and not task.windows:
        repair = f"There is no way to {task.name} a document window by window."
        raise bad("overflow", "'error' or 'truncate'", "window", repair)
    marks = _marks(model, task, encodings, options.global_tokens)
    if isinstance(config, StitchedConfig):
        return [
            _in_blocks(name, encoding, config, limit, options)
            for name, encoding in zip(names, encodings, strict=True)
        ]
    return [
        _document(name, encoding, marked, task, limit, options)
        for name, encoding, marked in zip(names, encodings, marks, strict=True)
    ]


def _marks(model: TaskModel, task: Task, encodings: Sequence[Encoding], given: Any) -> list[BoolArray]:
    """Which tokens are global: those the user chose, else what suits the task."""
    config = model.config
    empty = isinstance(config, EtcConfig) and config.block == 0
    if given is not None and (empty or isinstance(config, (BertConfig, MPNetConfig))):
        repair = "Leave it out, or use a Longformer or BigBird."
        raise bad("global_tokens", "None for a model without global tokens", given, repair)
    if given is None:
        free = isinstance(config, LongformerConfig) or (isinstance(config, EtcConfig) and not empty)
        given = task.rule if free else "none"
    elif isinstance(given, Mapping):
        given = Globals(**given)
    elif isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str):
        given = Globals(indices=list(given))
    marks = []
    for encoding, chosen in zip(encodings, Globals.of(given).resolve(encodings), strict=True):
        marked = np.zeros(len(encoding), bool)
        marked[list(chosen)] = True
        marks.append(marked)
    return marks


def _document(
    name: str, encoding: Encoding, marked: BoolArray, task: Task, limit: int, options: Options
) -> Document:
    """The document called `name` in errors, in pieces of at most `limit` tokens."""
    size = len(encoding)
    if size == 0:
        raise bad(name, "at least one token long", 0, NO_TOKENS)
    if size <= limit:
        return Document(encoding, marked, [Piece(np.arange(size), np.ones(size, bool))])
    if options.overflow == "error":
        ways = "Read it in windows (overflow='window'), cut" if task.windows else "Cut"
        repair = f"{ways} it (overflow='truncate'), or take a model with more positions."
        raise bad(name, f"at most {limit} tokens long", size, repair)
    body = _shortened(encoding, task.shortened)
    room = limit - (size - body.size)
    if room < 1:
        beside = f"{size - body.size} tokens of special tokens and the other part"
        raise bad("limit", f"more than the {beside} of {name}", limit, "Shorten the other part.")
    if options.overflow == "truncate":
        kept = np.sort(np.concatenate([np.setdiff1d(np.arange(size), body), body[:room]]))
        return Document(encoding, marked, [Piece(kept, np.ones(kept.size, bool))])
    overlap = room // 8 if options.overlap is None else options.overlap
    return Document(encoding, marked, _windows(size, body, windows(body.size, room, overlap)))


def _in_blocks(name: str, given: Encoding, config: StitchedConfig, limit: int, options: Options) -> Document:
    """The document called `name` in errors, in blocks; if in several pieces, then cut between blocks."""
    if len(given) == 0:
        raise bad(name, "at least one token long", 0, NO_TOKENS)
    most = config.positions // 2 if (given.source == 1).any() else config.positions  # a text and its pair
    encoding, begins = in_blocks(given, config.block, most if options.whole else min(2 * config.block, most))
    size = len(encoding)
    if size > limit and options.limit is not None:
        if options.overflow == "error":
            repair = "Leave the limit out, or choose overflow='window' or 'truncate'."
            raise bad(name, f"at most {limit} tokens long", size, repair)
        if options.overflow == "truncate":
            return Document(encoding, begins, [Piece(np.arange(limit), np.ones(limit, bool))])
    starts, cuts = np.flatnonzero(begins), [0]
    while size - cuts[-1] > limit:
        reach = starts[(starts > cuts[-1]) & (starts <= cuts[-1] + limit)]
        cuts.append(int(reach[-1]) if reach.size else cuts[-1] + limit)
    return Document(
        encoding, begins, [Piece(np.arange(a, b), np.ones(b - a, bool)) for a, b in pairwise([*cuts, size])]
    )


def _shortened(encoding: Encoding, part: int | None) -> IntArray:
    """The tokens of the part that gives way, one after the other."""
    if part is None:
        part = int(np.argmax([np.count_nonzero(encoding.source == source) for source in (0, 1)]))
    return np.flatnonzero(encoding.source == part)


def _windows(size: int, body: IntArray, stretches: Sequence[tuple[int, int]]) -> list[Piece]:
    """One piece for each stretch of `body`, all with the tokens around it; borders lie mid-overlap."""
    around = np.setdiff1d(np.arange(size), body)
    borders = [(stop + start) // 2 for (_, stop), (start, _) in pairwise(stretches)]
    borders = [0, *borders, body.size]
    pieces = []
    for number, (start, stop) in enumerate(stretches):
        rows = np.sort(np.concatenate([around, body[start:stop]]))
        first = body[borders[number]] if number else 0
        behind = body[borders[number + 1]] if number + 1 < len(stretches) else size
        pieces.append(Piece(rows, (rows >= first) & (rows < behind)))
    return pieces
