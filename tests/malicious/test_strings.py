"""Strings that are hard on tokenizers and splitters: no exception, no lost place, no time beyond linear."""

import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.search.answer import sentences
from longspan.search.highlight import Excerpt
from longspan.search.index import Index
from longspan.search.words import word_spans
from longspan.text.documents import Document
from longspan.text.files.plain import decode
from longspan.text.headings import headings
from longspan.text.passages import tile
from longspan.text.tokenizer import Tokenizer
from unit.tasks.tiny import reader, summariser
from unit.text import tiny
from unit.text.test_offsets import ODD, check

FAMILIES = (*tiny.FAMILIES, "pegasus")
ALPHABET = (*"the cat, sat?  \n", *ODD, "\u202e", "\u2066", "\u200b", "\u0303", "e\u0301", "é", "\udc80")
SPECIAL = (
    "<s>",
    "</s>",
    "<pad>",
    "<mask>",
    "<unk>",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "[PAD]",
    "[UNK]",
    "<n>",
    "<t>",
)
UNITS = {
    "a word": "a",
    "combining marks": "e\u0301",
    "blanks": " ",
    "lines": "\n",
    "dots": ". ",
    "capitals": "A B\n\n",
}
STEEPEST = 1.1
"""Of time over size, both logarithmic; 1 is linear, 2 quadratic."""
STEEPEST_BPE = 1.25
"""The merges of one word wait in a heap, which takes n log n, and outgrow the caches."""


@pytest.fixture(scope="module", params=FAMILIES)
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    family = str(request.param)
    return Tokenizer.from_folder(tiny.write(family, tmp_path_factory.mktemp(family)))


def strings(seed: int, count: int) -> list[str]:
    """Odd characters and words, and now and then a character of all of Unicode, lone surrogates too."""
    dice = random.Random(seed)
    parts = [*ALPHABET, *(chr(dice.randrange(0x110000)) for _ in range(200))]
    return ["".join(dice.choices(parts, k=dice.randrange(12))) for _ in range(count)]


@pytest.mark.parametrize("count", [4_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_every_string_has_tokens_that_lie_in_it(known: Tokenizer, count: int) -> None:
    """Five families: a million strings in the slow one."""
    for begin in range(0, count, 4_000):
        texts = strings(begin, min(4_000, count - begin))
        for text, encoding in zip(texts, known.encode_many(texts), strict=True):
            check(encoding, text, 0)


def test_any_bytes_become_text_whose_places_lead_back() -> None:
    dice = random.Random(3)
    for text in strings(5, 10_000):
        data = text.encode("utf-8", "surrogatepass") + dice.randbytes(dice.randrange(3))
        found, replaced = decode(data)
        assert replaced <= found.count("\ufffd")
        document = Document(found)
        assert document.line_of(len(found)) == 1 + found.count("\n")


@pytest.mark.parametrize("special", SPECIAL)
def test_no_typed_token_is_promoted(known: Tokenizer, special: str) -> None:
    for written in (special, f"the {special} cat", f"the{special}{special}cat"):
        for encoding in known.encode_many([written, ("a", written)]):
            inside = set(encoding.ids[encoding.source >= 0].tolist()) - {known.unk}
            assert not inside & known.special_ids


def slope(
    act: Callable[[str], object], unit: str, small: int, factor: int = 32, limit: float = STEEPEST
) -> float:
    """How steeply time grows with size: the least of some trials, for a busy machine adds to single ones."""
    steepness = []
    for _ in range(5):
        seconds = []
        for size in (small, small * factor):
            text = unit * (size // len(unit))
            started = time.thread_time()
            act(text)
            seconds.append(time.thread_time() - started)
        steepness.append(math.log(max(seconds[1], 1e-6) / max(seconds[0], 1e-6), factor))
        if steepness[-1] <= limit:
            break
    return min(steepness)


SPLITTERS: dict[str, Callable[[str], object]] = {
    "words": word_spans,
    "passages": lambda text: tile(text, ()),
    "sentences": sentences,
    "headings": headings,
    "excerpts": lambda text: Excerpt.of(text, 0, len(text) // 2).cut(),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", SPLITTERS)
def test_splitters_take_linear_time(name: str, unit: str) -> None:
    assert slope(SPLITTERS[name], UNITS[unit], 8_000) <= STEEPEST


@pytest.mark.parametrize("unit", ["a word", "combining marks", "blanks"])
def test_tokenizers_take_linear_time(known: Tokenizer, unit: str) -> None:
    limit = STEEPEST_BPE if "BPE" in repr(known) else STEEPEST
    assert slope(known.encode, UNITS[unit], 4_000, limit=limit) <= limit


BLANK = ("", " ", "\n")
ONE = ("a", "\u200b")


def tasks() -> dict[str, tuple[bool, Callable[[str], Any]]]:
    """For each way to read a text, whether a blank one has a result, and the call."""
    own = {name: reader("longformer", name) for name in ("encode", "classify", "tag", "answer", "choose")}
    return {
        "encode": (True, own["encode"].encode),
        "encode_tokens": (True, own["encode"].encode_tokens),
        "classify": (True, own["classify"].classify),
        "tag": (True, own["tag"].tag),
        "choose": (True, lambda text: own["choose"].choose(text, ["a", "b"])),
        "answer": (False, lambda text: own["answer"].answer("what?", text)),
        "summarize": (False, lambda text: summariser().summarize(text, max_new_tokens=3)),
    }


def test_a_text_of_next_to_nothing_has_a_result_or_an_error_that_says_so() -> None:
    for name, (has_result, act) in tasks().items():
        for text in (*BLANK, *ONE):
            if has_result or text in ONE:
                found = act(text)
                assert found is not None, name
                if name.startswith("encode"):
                    assert np.isfinite(found).all()
            else:
                with pytest.raises(InputError, match="must be a text with something in it, but is"):
                    act(text)


def test_an_index_of_files_with_next_to_nothing_in_them_is_made_and_searched(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number, text in enumerate((*BLANK, *ONE)):
        (tmp_path / "docs" / f"{number}.txt").write_text(text, encoding="utf-8")
    index = Index.open(tmp_path / "index")
    report = index.add(tmp_path / "docs", vectors=False, progress=False)
    assert (report.added, report.failed) == (5, [])
    assert [hit.text for hit in index.search("a", mode="bm25")] == ["a"]
    index.verify()
