"""Examples to train on: stretches of documents, each between a first and a last special token."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longspan.corpus.store import Corpus
from longspan.errors import InputError, bad, one_of, whole
from longspan.shapes import IntArray
from longspan.text.tokenizer import Tokenizer

PACKINGS = ("documents", "joined")


@dataclass(frozen=True)
class Frame:
    """The special tokens around an example."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    separator: int | None
    "What stands between two documents that are joined."

    @staticmethod
    def of(tokenizer: Tokenizer) -> "Frame":
        """Those that the tokenizer puts around a text."""
        encoding = tokenizer.encode("a")
        inner = np.flatnonzero(encoding.source >= 0)
        if not inner.size:
            raise InputError("The tokenizer makes no token of the letter a, so no example can be framed.")
        ids = encoding.ids.tolist()
        first, last = ids[: inner[0]], ids[inner[-1] + 1 :]
        ends = [index for index in (*last, tokenizer.sep, tokenizer.eos) if index is not None]
        return Frame(tuple(first), tuple(last), ends[0] if ends else None)

    @property
    def size(self) -> int:
        """How many tokens of an example are not the document's."""
        return len(self.first) + len(self.last)


@dataclass(frozen=True, eq=False)
class Examples:
    """Some documents of a corpus in examples of at most `length` tokens.

    Packing "documents" begins each document in an example of its own; its last one may be short. "joined"
    puts the separator between documents and cuts through their whole row ("full sentences", Liu et al. 2019,
    section 4.2): all examples but the last are full.
    """

    corpus: Corpus
    documents: IntArray
    frame: Frame
    length: int
    packing: str = "documents"

    def __post_init__(self) -> None:
        whole("length", self.length, self.frame.size + 1)
        one_of("packing", self.packing, PACKINGS)
        if self.packing == "joined" and self.frame.separator is None:
            raise bad("packing", "documents for a tokenizer without a separator", self.packing)

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def lengths(self) -> IntArray:
        """(examples,): tokens of each, special ones counted."""
        sizes = self._sizes
        if self.packing == "joined":
            sizes = sizes.sum(keepdims=True) - 1 if sizes.size else sizes  # no separator behind the last one
        counts = -(-sizes // self.room)
        lengths = np.full(int(counts.sum()), self.room)
        lengths[np.cumsum(counts) - 1] = sizes - (counts - 1) * self.room
        return lengths + self.frame.size

    @property
    def room(self) -> int:
        """Tokens of documents in a full example."""
        return self.length - self.frame.size

    @cached_property
    def _sizes(self) -> IntArray:
        """(documents,): tokens, with the separator where documents are joined."""
        sizes: IntArray = self.corpus.lengths[self.documents] + (self.packing == "joined")
        return sizes

    @cached_property
    def _ends(self) -> IntArray:
        """(documents,): where each ends: among all tokens if they are joined, else among the examples."""
        sizes = self._sizes if self.packing == "joined" else -(-self._sizes // self.room)
        return np.cumsum(sizes)

    def ids(self, example: int) -> IntArray:
        """The tokens of an example."""
        inner = self._joined(example) if self.packing == "joined" else self._own(example)
        return np.concatenate([self.frame.first, inner, self.frame.last]).astype(np.int64)

    def _own(self, example: int) -> IntArray:
        place = int(np.searchsorted(self._ends, example, side="right"))
        number = example - (int(self._ends[place - 1]) if place else 0)
        begin = number * self.room
        return self.corpus.document(int(self.documents[place]), begin, begin + self.room)

    def _joined(self, example: int) -> IntArray:
        begin = example * self.room
        end = min(begin + self.room, int(self._ends[-1]) - 1)
        pieces: list[IntArray] = []
        while begin < end:
            place = int(np.searchsorted(self._ends, begin, side="right"))
            start = int(self._ends[place - 1]) if place else 0
            found = self.corpus.document(int(self.documents[place]), begin - start, end - start)
            pieces.append(found)
            begin += found.size
            if begin < end:
                pieces.append(np.array([self.frame.separator]))
                begin += 1
        return np.concatenate(pieces)
