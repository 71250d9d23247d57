"""Long texts are tokenized in pieces, cut where each piece has exactly the tokens that it has in the whole.

A place to cut is a single space, or line break, between two characters that are neither space nor accent.
Most tokenizers begin a new word there whatever stands around it: no normalizer changes such a place, no added
token reaches across it. A piece is read together with a word before it, since the first word of a text may
get a space of its own; the tokens of that word are dropped again. A tokenizer that is not known to work so
reads every text at once.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tokenizers

PIECE = 1 << 15
"""Characters of a piece, and a few more up to the next place to cut."""
AT_ONCE = 4
"""Pieces that are tokenized in parallel: few, so that Ctrl-C is heard and memory stays small."""
_SPACE = re.compile(r"(?<=[!-~\w]) (?=[!-~\w])")
_SPACE_OR_LINE = re.compile(r"(?<=[!-~\w])[ \n](?=[!-~\w])")
_KEEPS_PLACES = frozenset(
    (
        "BertNormalizer",
        "Lowercase",
        "NFC",
        "NFD",
        "NFKC",
        "NFKD",
        "Nmt",
        "Precompiled",
        "Prepend",
        "Strip",
        "StripAccents",
    )
)
_SPLITS_LINES = frozenset(("BertPreTokenizer", "Whitespace", "WhitespaceSplit"))
_SPLITS_ELSEWHERE = frozenset(("Digits", "Punctuation"))


Part = npt.NDArray[np.int32]
"""A part of a column: half the size of the whole one, beside which it stands in memory for a while."""


class Tokens(NamedTuple):
    """The tokens of a text, without special ones around them; each column in parts."""

    ids: list[Part]
    offsets: list[Part]
    "(n, 2): where each begins and ends, in characters."

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return sum(map(len, self.ids))


def places(state: Mapping[str, Any]) -> re.Pattern[str] | None:
    """What a text may be cut before, for the tokenizer of a tokenizer.json; None if that is not known."""
    if state["model"].get("dropout") or not _keeps_places(state.get("normalizer")):
        return None
    if any(_reaches_across(token) for token in state.get("added_tokens", ())):
        return None
    found = _members(state.get("pre_tokenizer"), "pretokenizers")
    splits = [_split(member) for member in found]
    if None in splits or not any(splits):
        return None
    return _SPACE_OR_LINE if "lines" in splits else _SPACE


def is_long(size: int) -> bool:
    """Whether so many characters are worth cutting."""
    return size > 2 * PIECE


def tokens(backend: tokenizers.Tokenizer, text: str, place: re.Pattern[str]) -> Tokens:
    """The tokens of a long text."""
    found = Tokens([], [])
    spans_of = _spans(text, place)
    while some := list(islice(spans_of, AT_ONCE)):
        raw = backend.encode_batch([text[before:end] for before, _, end in some], add_special_tokens=False)
        for (before, start, _), each in zip(some, raw, strict=True):
            spans = np.asarray(each.offsets, np.int32).reshape(-1, 2) + before
            # Behind the last that begins before: a token of nothing but a space may be said to end there.
            first = int(np.flatnonzero(spans[:, 0] < start).max(initial=-1)) + 1
            found.ids.append(np.asarray(each.ids, np.int32)[first:])
            found.offsets.append(spans[first:])
    return found


def _spans(text: str, place: re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
    """Pieces as (where the words before it begin, start, end)."""
    before = start = 0
    while start < len(text):
        last = place.search(text, start + PIECE)
        cut = last and place.search(text, last.end())
        end = cut.start() if cut else len(text)
        yield before, start, end
        before, start = last.start() if last else end, end


def _members(part: Mapping[str, Any] | None, key: str) -> list[Mapping[str, Any]]:
    """The steps of a part of a tokenizer, in order."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [member for each in part[key] for member in _members(each, key)]
    return [part]


def _keeps_places(normalizer: Mapping[str, Any] | None) -> bool:
    """Whether a place to cut stays one, and both of its sides are normalized each by itself."""
    return all(
        step["type"] in _KEEPS_PLACES or (step["type"] == "Replace" and _replaces_words(step))
        for step in _members(normalizer, "normalizers")
    )


def _replaces_words(step: Mapping[str, Any]) -> bool:
    """Whether a replacement leaves single spaces alone, and the characters beside them visible."""
    pattern, content = step["pattern"], step["content"]
    if "Regex" in pattern:
        return bool(pattern["Regex"] == " {2,}" and content)
    words = pattern["String"]
    return (words, content) == ("\n", " ") or not (re.search(r"\s", words + content) or not content)


def _split(step: Mapping[str, Any]) -> str | None:
    """Where a pre-tokenizer splits: at "lines" and spaces, at "spaces", "" elsewhere; None: not known."""
    kind = step["type"]
    if kind in _SPLITS_LINES or (kind == "ByteLevel" and step.get("use_regex", True)):
        return "lines"
    if kind == "Metaspace" and step.get("split", True):
        return "spaces"
    return "" if kind in _SPLITS_ELSEWHERE else None


def _reaches_across(token: Mapping[str, Any]) -> bool:
    """Whether an added token may take in a space between two words."""
    return bool(token["rstrip"] or re.search(r"\S\s", token["content"]))
