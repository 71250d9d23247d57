"""The structure of texts: which global tokens stand for them, and what belongs to which.

Such a text is read in two streams: its tokens, and a few global tokens, each for a sentence, a paragraph, a
candidate answer or just a block (ETC, section 3). An `Outline` says this of one text, a `Structure` of the
documents of a layout. Batches carry it as tags of the layout, one number for each token:

    parent     the global token of its sentence or block, counted from 0 in the document; -1: none
    paragraph  that of its paragraph
    linked     one that it mentions: labelled as if it belonged there, but a hard mask does not let it through
    segment    tokens of different segments do not see each other in the window
    free       1: hard masks do not hold for this token
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from longspan.errors import bad, whole
from longspan.layout import Layout
from longspan.patterns.belongs import FREE, LINKS
from longspan.shapes import BoolArray, IntArray

SEGMENT = "segment"
TAGS = (*LINKS, SEGMENT, FREE)


@dataclass(frozen=True, kw_only=True)
class Words:
    """Ids of global tokens, which come from the vocabulary of all tokens; by default etcmodel's."""

    sentence: int = 1
    question: int = 3
    candidate: int = 4
    paragraph: int = 5
    first: int = 101
    "CLS, for the whole text."


WORDPIECE = Words()


@dataclass(frozen=True, eq=False, kw_only=True)
class Outline:
    """The structure of one text of n tokens with g global tokens; columns that are None say nothing."""

    words: IntArray
    "(g,) ids of the global tokens."
    parent: IntArray
    "(n,) this and the next four as the tags above."
    paragraph: IntArray | None = None
    linked: IntArray | None = None
    segment: IntArray | None = None
    free: IntArray | None = None
    types: IntArray | None = None
    "(g,) types of the global tokens, None for the model's usual one."
    global_segment: IntArray | None = None
    "(g,) segments of the global tokens: across segments it is not told how far apart they are."
    global_free: IntArray | None = None
    "(g,) 1: hard masks do not hold for this global token."

    def __post_init__(self) -> None:
        n, g = np.size(self.parent), np.size(self.words)
        sizes = dict.fromkeys(TAGS, n) | dict.fromkeys(("words", "types", "global_segment", "global_free"), g)
        for name, size in sizes.items():
            column = getattr(self, name)
            if column is None:
                continue
            column = np.asarray(column, np.int32)
            object.__setattr__(self, name, column)
            if column.shape != (size,):
                raise bad(name, f"of shape ({size},)", column.shape)
            if name in LINKS and column.max(initial=-1) >= g:
                repair = "Count from 0; -1 is none."
                raise bad(name, f"less than the {g} global tokens", int(column.max()), repair)

    @property
    def tags(self) -> dict[str, IntArray]:
        """What `Layout.packed` takes to carry it; what kind a global token is, its tokens then tell."""
        return {name: column for name in TAGS if (column := getattr(self, name)) is not None}


@dataclass(frozen=True, eq=False)
class Structure:
    """The two streams of a batch: rows of `globals` are marked, those of `long` are not.

    Global tokens have their places behind the tokens of their document, so that no two rows share one; links
    of `long` tell these places.

    >>> structure = Structure.read(Layout.packed([7, 2]), block=3, most=256)
    >>> structure
    Structure(9 tokens, 4 global tokens, 2 documents)
    >>> structure.long.sites.tags["parent"].tolist(), structure.globals.sites.position.tolist()
    ([7, 7, 7, 8, 8, 8, 9, 2, 2], [7, 8, 9, 2])
    """

    long: Layout
    "The tokens, with the tags above as far as there are any."
    globals: Layout
    "The global tokens, with the tags segment and free."
    words: IntArray
    "(G,) their ids."
    types: IntArray | None = None
    "(G,) their types, None for the model's usual one."

    @staticmethod
    def packed(outlines: Sequence[Outline]) -> "Structure":
        """Texts end to end, each with its outline."""
        if not outlines:
            raise bad("outlines", "a list of at least one", outlines)
        long = {name: _column(outlines, name, "parent", -(name in LINKS)) for name in TAGS}
        top = {name: _column(outlines, f"global_{name}", "words", 0) for name in (SEGMENT, FREE)}
        typed = [o.types is not None for o in outlines]
        if any(typed) and not all(typed):
            raise bad("types", "given in all outlines or in none", f"given in {sum(typed)}")
        layout = Layout.packed([o.parent.size for o in outlines])
        words = np.concatenate([o.words for o in outlines])
        types = _column(outlines, "types", "words", 0) if any(typed) else None
        return _structure(layout, long, [o.words.size for o in outlines], top, words, types)

    @staticmethod
    def read(layout: Layout, *, block: int, most: int, words: Words = WORDPIECE) -> "Structure":
        """What the tags of a layout say; without any, a global token for marked tokens and blocks of others.

        Blocks have `block` tokens, or so many more that a document gets `most` global tokens; with 0 there
        are none at all. Where tags tell, a global token is a question's if a marked token is its own, a
        paragraph's if it is one to some token, else a sentence's; its segment is its first token's. Rows lie
        document by document, as in packed and padded layouts.
        """
        tags = {name: column for name, column in layout.sites.tags.items() if name in TAGS}
        if any(name in tags for name in LINKS):
            counts = _counts(layout, tags)
            ids = np.full(int(counts.sum()), words.sentence)
            if "paragraph" in tags:
                ids[_slots(layout, tags["paragraph"], counts)[1]] = words.paragraph
            questions = np.where(layout.sites.marked, tags.get("parent", -1), -1)
            ids[_slots(layout, questions, counts)[1]] = words.question
        else:
            tags["parent"], counts, ids = _blocks(layout, whole("block", block, 0), most, words)
        own = {SEGMENT: _segments(layout, tags, counts)} if SEGMENT in tags else {}
        return _structure(layout, tags, counts.tolist(), own, ids.astype(np.int32), None)

    @cached_property
    def joined(self) -> Layout:
        """The rows of both streams: the tokens of all documents, then all global tokens."""
        return Layout.join(self.long, self.globals)

    def flat(self) -> "Structure":
        """The same without paragraphs, links, segments and exceptions: only parents are told."""
        site, top = self.long.sites, self.globals.sites
        parents = {name: column for name, column in site.tags.items() if name == "parent"}
        long = Layout(replace(site, tags=parents), self.long.lengths)
        return replace(self, long=long, globals=Layout(replace(top, tags={}), self.globals.lengths))

    def __repr__(self) -> str:
        sizes = f"{self.long.size} tokens, {self.globals.size} global tokens"
        return f"Structure({sizes}, {self.long.documents} document{'s' * (self.long.documents != 1)})"


def _column(outlines: Sequence[Outline], name: str, like: str, empty: int) -> IntArray:
    columns = ((getattr(o, name), getattr(o, like).size) for o in outlines)
    return np.concatenate([np.full(n, empty, np.int32) if c is None else c for c, n in columns])


def _structure(
    layout: Layout,
    tags: Mapping[str, IntArray],
    counts: Sequence[int],
    own: Mapping[str, IntArray],
    words: IntArray,
    types: IntArray | None,
) -> Structure:
    """Both streams: tokens with `tags`, and `counts` global tokens in each document with their `own` tags."""
    site, behind = layout.sites, layout.lengths[layout.sites.document]
    placed = {
        name: np.where(column < 0, -1, column + behind).astype(np.int32) if name in LINKS else column
        for name, column in tags.items()
    }
    long = Layout(replace(site, marked=np.zeros(layout.size, bool), tags=placed), layout.lengths)
    top = Layout.packed(counts, start=layout.lengths.tolist(), tags=own)
    top = Layout(replace(top.sites, marked=np.ones(top.size, bool)), top.lengths)
    return Structure(long, top, words, types)


def _counts(layout: Layout, tags: Mapping[str, IntArray]) -> IntArray:
    """(documents,) as many global tokens as the links of each document name."""
    counts = np.zeros(layout.documents, np.int64)
    for name in LINKS:
        if name in tags:
            np.maximum.at(counts, layout.sites.document, np.where(layout.sites.exists, tags[name] + 1, 0))
    return counts


def _slots(layout: Layout, links: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """The tokens that have a link, and the rows of the global tokens they are linked with."""
    rows = np.flatnonzero((links >= 0) & layout.sites.exists)
    start = np.cumsum(counts) - counts
    return rows, start[layout.sites.document[rows]] + links[rows]


def _segments(layout: Layout, tags: Mapping[str, IntArray], counts: IntArray) -> IntArray:
    """(G,) the segment of each global token's first token; -1 if nothing belongs to it."""
    first = np.full(int(counts.sum()), layout.size)
    for name in ("parent", "paragraph"):
        if name in tags:
            rows, slots = _slots(layout, tags[name], counts)
            np.minimum.at(first, slots, rows)
    segments: IntArray = np.append(tags[SEGMENT], -1)[first]
    return segments


def _blocks(layout: Layout, block: int, most: int, words: Words) -> tuple[IntArray, IntArray, IntArray]:
    """Each token's global token, how many there are in each document, and their ids."""
    site = layout.sites
    if block == 0:
        return np.full(layout.size, -1, np.int32), np.zeros(layout.documents, np.int64), np.zeros(0, np.int64)
    apart, plain = site.marked & site.exists, ~site.marked & site.exists
    marks, others = (np.bincount(site.document[rows], minlength=layout.documents) for rows in (apart, plain))
    size = np.maximum(block, -(-others // np.maximum(whole("most", most, 1) - marks, 1)))
    counts = marks + -(-others // size)
    parent = np.where(
        apart,
        _rank(apart, marks, site.document),
        marks[site.document] + _rank(plain, others, site.document) // size[site.document],
    )
    document = np.repeat(np.arange(layout.documents), counts)
    place = np.arange(document.size) - (np.cumsum(counts) - counts)[document]
    ids = np.where(place < marks[document], words.question, words.sentence)
    return np.where(site.exists, parent, -1).astype(np.int32), counts, ids


def _rank(chosen: BoolArray, counts: IntArray, document: IntArray) -> IntArray:
    """How many chosen rows of the same document stand before each row."""
    return np.cumsum(chosen) - chosen - (np.cumsum(counts) - counts)[document]
