"""From encodings to what a model reads: whole documents, or pieces of those that are too long."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, NamedTuple, TypedDict, TypeVar

import numpy as np

from longspan.errors import bad
from longspan.families.config import Blocks
from longspan.families.task_model import TaskModel
from longspan.pipeline.global_tokens import Globals, GlobalTokens, Rule
from longspan.pipeline.options import Options
from longspan.pipeline.packing import windows
from longspan.shapes import BoolArray, FloatArray, IntArray
from longspan.text.blocks import in_blocks
from longspan.text.encoding import Encoding

T = TypeVar("T")
NO_TOKENS = "Use a tokenizer that adds special tokens."


class ReadingInfo(TypedDict):
    """What was read of a document, as part of a result."""

    n_tokens: int
    truncated: int
    windows: int


class Reading(NamedTuple):
    """What was read of a document."""

    n_tokens: int
    "Tokens that the model saw, special tokens included, overlaps counted once."
    truncated: int
    "Tokens that it did not see."
    windows: int
    "How many pieces it was read in."

    def info(self) -> ReadingInfo:
        """The same as part of a result."""
        return {"n_tokens": self.n_tokens, "truncated": self.truncated, "windows": self.windows}


class Found(list[T], Generic[T]):
    """A list of results of one document that also says what was read of it.

    >>> Found([{"word": "Rome"}], Reading(12, 0, 1)).n_tokens
    12
    """

    def __init__(self, results: Iterable[T], reading: Reading) -> None:
        super().__init__(results)
        self.n_tokens, self.truncated, self.windows = reading


@dataclass(frozen=True, kw_only=True)
class ReadingRules:
    """What a task asks of the way its documents are read."""

    name: str
    "The verb: what is done with a document."
    global_tokens: Rule = "none"
    "Which tokens are global if the user says nothing and the family leaves it to the task."
    shortened: int | None = None
    "The part that is cut or read in windows: 0 the text, 1 its pair, None the longer one."
    windows: bool = True
    "Whether the results of the windows of a document can be joined."


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

    def joined(self, outputs: Sequence[FloatArray]) -> tuple[IntArray, FloatArray]:
        """The tokens that were read, and the pieces' outputs for them."""
        rows = np.concatenate([piece.rows[piece.owned] for piece in self.pieces])
        pairs = zip(self.pieces, outputs, strict=True)
        values = np.concatenate([value[piece.owned] for piece, value in pairs])
        order = np.argsort(rows)
        return rows[order], values[order]


def prepare(
    model: TaskModel,
    rules: ReadingRules,
    names: Sequence[str],
    encodings: Sequence[Encoding],
    options: Options,
) -> list[Document]:
    """Encodings, called `names` in errors, as documents that the model can read."""
    longest = model.longest
    limit = longest if options.limit is None else options.limit
    if limit > longest:
        raise bad("limit", f"at most {longest}, what the model reads at once", limit)
    if options.overflow == "window" and not rules.windows:
        repair = f"There is no way to {rules.name} a document window by window."
        raise bad("overflow", "'error' or 'truncate'", "window", repair)
    marks = _marks(model, rules, encodings, options.global_tokens)
    inputs, blocks = zip(names, encodings, marks, strict=True), model.config.reading_blocks
    if blocks is not None:
        return [_in_blocks(name, encoding, blocks, limit, options) for name, encoding, _ in inputs]
    return [_document(name, encoding, marked, rules, limit, options) for name, encoding, marked in inputs]


def _marks(
    model: TaskModel, rules: ReadingRules, encodings: Sequence[Encoding], global_tokens: GlobalTokens | None
) -> list[BoolArray]:
    """Which tokens are global: those the user chose, else what suits the task."""
    use = model.config.global_tokens
    if global_tokens is not None and use == "none":
        repair = "Leave it out, or use a model that has them."
        raise bad("global_tokens", "None for a model without global tokens", global_tokens, repair)
    if global_tokens is None:
        global_tokens = rules.global_tokens if use == "by task" else "none"
    marks = []
    for encoding, chosen in zip(encodings, Globals.of(global_tokens).resolve(encodings), strict=True):
        marked = np.zeros(len(encoding), bool)
        marked[list(chosen)] = True
        marks.append(marked)
    return marks


def _document(
    name: str, encoding: Encoding, marked: BoolArray, rules: ReadingRules, limit: int, options: Options
) -> Document:
    """The document called `name` in errors, in pieces of at most `limit` tokens."""
    size = len(encoding)
    if size == 0:
        raise bad(name, "at least one token long", 0, NO_TOKENS)
    if size <= limit:
        return Document(encoding, marked, [Piece(np.arange(size), np.ones(size, bool))])
    if options.overflow == "error":
        ways = "Read it in windows (overflow='window'), cut" if rules.windows else "Cut"
        repair = f"{ways} it (overflow='truncate'), or take a model with more positions."
        raise bad(name, f"at most {limit} tokens long", size, repair)
    lengths = [np.count_nonzero(encoding.source == source) for source in (0, 1)]
    part = np.argmax(lengths) if rules.shortened is None else rules.shortened
    body = np.flatnonzero(encoding.source == part)  # what gives way
    room = limit - (size - body.size)
    if room < 1:
        beside = f"{size - body.size} tokens of special tokens and the other part"
        raise bad("limit", f"more than the {beside} of {name}", limit, "Shorten the other part.")
    if options.overflow == "truncate":
        kept = np.sort(np.concatenate([np.setdiff1d(np.arange(size), body), body[:room]]))
        return Document(encoding, marked, [Piece(kept, np.ones(kept.size, bool))])
    overlap = room // 8 if options.overlap is None else options.overlap
    return Document(encoding, marked, _windows(size, body, windows(body.size, room, overlap)))


def _in_blocks(name: str, plain: Encoding, blocks: Blocks, limit: int, options: Options) -> Document:
    """The document called `name` in errors, in blocks; if in several pieces, then cut between blocks."""
    if len(plain) == 0:
        raise bad(name, "at least one token long", 0, NO_TOKENS)
    most = blocks.most // 2 if (plain.source == 1).any() else blocks.most  # a text and its pair
    encoding, begins = in_blocks(plain, blocks.size, most if options.whole else min(2 * blocks.size, most))
    size = len(encoding)
    if size > limit and options.limit is not None:
        if options.overflow == "error":
            repair = "Leave the limit out, or use overflow='window' or 'truncate'."
            raise bad(name, f"at most {limit} tokens long", size, repair)
        if options.overflow == "truncate":
            return Document(encoding, begins, [Piece(np.arange(limit), np.ones(limit, bool))])
    starts, cuts = np.flatnonzero(begins), [0]
    while size - cuts[-1] > limit:
        reach = starts[(starts > cuts[-1]) & (starts <= cuts[-1] + limit)]
        cuts.append(int(reach[-1]) if reach.size else cuts[-1] + limit)
    pieces = [Piece(np.arange(a, b), np.ones(b - a, bool)) for a, b in pairwise([*cuts, size])]
    return Document(encoding, begins, pieces)


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
