"""Outlines of real little texts, question layouts as etcmodel has them, and structures of batches."""

import re

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.layout import Layout
from longspan.structure.outlines import blocks, paragraphs, sentences
from longspan.structure.questions import Example, hotpot, natural_questions, trivia, wikihop
from longspan.structure.structure import Outline, Structure, Words

STORY = (
    'It was late. "Who is there?" she asked. Nobody\nanswered.\n\n'
    "# The door\nIt opened! Was it the wind? 它开了。真的吗？\f(The end.) Really"
)
WORDS = Words(sentence=11, question=13, candidate=14, paragraph=15, first=10)


def spans(text: str) -> list[tuple[int, int]]:
    """Every word and every mark, between tokens without characters."""
    return [(0, 0), *(found.span() for found in re.finditer(r"\w+|[^\w\s]", text)), (0, 0)]


def stretches(text: str, column: np.ndarray) -> list[str]:
    """The text of each run of tokens with one number."""
    where = np.array(spans(text))
    return [
        text[where[column == number][0, 0] : where[column == number][-1, 1]]
        for number in sorted(set(column[column >= 0].tolist()))
    ]


def test_sentences_end_where_a_reader_would_say() -> None:
    outline = sentences(STORY, spans(STORY), words=WORDS)
    assert stretches(STORY, outline.parent) == [
        "It was late.",
        '"Who is there?"',
        "she asked.",
        "Nobody",
        "answered.",
        "# The door",
        "It opened!",
        "Was it the wind?",
        "它开了。",
        "真的吗？",
        "(The end.)",
        "Really",
    ]
    assert outline.words.tolist() == [11] * 12
    assert outline.parent[[0, -1]].tolist() == [-1, -1]


def test_paragraphs_come_before_their_sentences_and_are_segments() -> None:
    outline = paragraphs(STORY, spans(STORY), words=WORDS)
    assert outline.paragraph is not None
    assert outline.segment is not None
    assert outline.global_segment is not None
    tops = np.flatnonzero(outline.words == 15)
    assert tops.tolist() == [0, 6, 12]
    assert [text[:6] for text in stretches(STORY, outline.paragraph)] == ["It was", "# The ", "(The e"]
    assert len(stretches(STORY, outline.parent)) == 12
    assert set(outline.parent[outline.parent >= 0]) == set(range(15)) - set(tops)
    inside = outline.parent >= 0
    assert (outline.global_segment[outline.parent[inside]] == outline.segment[inside]).all()
    assert (outline.global_segment[outline.paragraph[inside]] == outline.segment[inside]).all()


@pytest.mark.parametrize("text", ["", "   \n\n ", "one", "\n\none two\n\n\n\n"])
@pytest.mark.parametrize("kind", [sentences, paragraphs])
def test_texts_of_next_to_nothing_have_outlines(text: str, kind: type) -> None:
    outline = kind(text, spans(text))
    assert outline.parent.size == len(spans(text))
    assert outline.words.size == (0 if not text.strip() else 1 if kind is sentences else 2)
    assert Structure.packed([outline]).globals.size == outline.words.size


def test_blocks_have_one_size_but_the_last() -> None:
    assert np.bincount(blocks(100, 27).parent).tolist() == [27, 27, 27, 19]
    assert blocks(0, 27).words.size == 0


def columns(example: Example) -> dict[str, list[int]]:
    outline = example.outline
    names = ("words", "types", "parent", "paragraph", "linked", "segment", "global_segment", "global_free")
    return {name: getattr(outline, name).tolist() for name in names}


def test_hotpot_is_laid_out_as_in_etcmodel() -> None:
    made = hotpot([7, 8], [([30], [[31, 32], [33]]), ([40, 41], [[42]])], first=10, words=WORDS)
    assert made.ids.tolist() == [10, 7, 8, 30, 31, 32, 33, 40, 41, 42]
    assert made.types.tolist() == [1, 3, 3, 2, 1, 1, 1, 2, 2, 1]
    assert columns(made) == {
        "words": [10, 13, 13, 15, 11, 11, 11, 15, 11, 11],
        "types": [0] * 10,
        "parent": [-1, 1, 2, 4, 5, 5, 6, 8, 8, 9],
        "paragraph": [-1, -1, -1, 3, 3, 3, 3, 7, 7, 7],
        "linked": [-1] * 10,
        "segment": [0, 1, 1, 2, 2, 2, 2, 3, 3, 3],
        "global_segment": [0, 1, 1, 2, 2, 2, 2, 3, 3, 3],
        "global_free": [1, *[0] * 9],
    }


def test_wikihop_links_mentions_and_lets_candidates_and_query_see_everything() -> None:
    made = wikihop([[20, 21], [22]], [7, 8], [[[30, 22, 20], [20, 21, 33]], [[40]]], words=WORDS)
    assert made.ids.tolist() == [20, 21, 22, 7, 8, 30, 22, 20, 20, 21, 33, 40]
    assert made.types.tolist() == [4, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1]
    assert columns(made) == {
        "words": [14, 14, 13, 13, 15, 11, 11, 15, 11],
        "types": [6, 6, 5, 5, 7, 0, 0, 7, 0],
        "parent": [0, 0, 1, 2, 3, 5, 5, 5, 6, 6, 6, 8],
        "paragraph": [-1] * 5 + [4] * 6 + [7],
        "linked": [0, 0, 1, -1, -1, -1, 1, -1, 0, 0, -1, -1],
        "segment": [0, 0, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4],
        "global_segment": [0, 1, 2, 2, 3, 3, 3, 4, 4],
        "global_free": [1, 1, 1, 1, 0, 0, 0, 0, 0],
    }


def test_natural_questions_gives_every_run_of_a_candidate_a_global_token() -> None:
    chunk, of = [30, 31, 32, 33, 34], [-1, 4, 4, 5, 5]
    made = natural_questions([7, 8], chunk, of, first=10, separator=9, words=WORDS)
    assert made.ids.tolist() == [10, 7, 8, 9, 30, 31, 32, 33, 34, 9]
    assert made.outline.words.tolist() == [10, 13, 13, 13, 0, 11, 11, 0]
    assert made.outline.parent.tolist() == [0, 1, 2, 3, 4, 5, 5, 6, 6, 7]
    few = natural_questions([7, 8], chunk, of, first=10, separator=9, words=WORDS, most=6)
    assert few.outline.words.tolist() == [10, 13, 13, 13, 0, 11]
    assert few.outline.parent.tolist() == [0, 1, 2, 3, 4, 5, 5, 5, 5, 5]
    with pytest.raises(InputError, match="`candidates` must be one number for each of the 5 tokens"):
        natural_questions([7], chunk, [0], first=10, separator=9)


def test_trivia_has_a_global_token_for_each_sentence() -> None:
    made = trivia([7], [[30, 31], [], [32]], first=10, separator=9, words=WORDS)
    assert made.ids.tolist() == [10, 7, 9, 30, 31, 32]
    assert made.outline.parent.tolist() == [0, 1, 0, 2, 2, 4]
    assert made.outline.words.tolist() == [10, 13, 11, 11, 11]


def test_documents_of_a_batch_keep_their_own_global_tokens() -> None:
    made = Structure.packed([blocks(5, 2), blocks(0, 2), blocks(3, 4)])
    assert made.long.lengths.tolist() == [5, 0, 3]
    assert made.globals.sites.document.tolist() == [0, 0, 0, 2]
    assert made.long.sites.tags["parent"].tolist() == [5, 5, 6, 6, 7, 3, 3, 3]
    assert made.globals.sites.marked.all()
    assert not made.long.sites.marked.any()
    assert made.joined.size == 12


def test_tags_say_what_an_outline_says() -> None:
    outline = paragraphs(STORY, spans(STORY))
    n = outline.parent.size
    layout = Layout.packed([n], tags=outline.tags)
    read, packed = Structure.read(layout, block=27, most=9), Structure.packed([outline])
    assert read.words.tolist() == packed.words.tolist()
    for name in outline.tags:
        assert read.long.sites.tags[name].tolist() == packed.long.sites.tags[name].tolist()
    mine, theirs = (structure.globals.sites.tags["segment"] for structure in (read, packed))
    assert mine.tolist() == theirs.tolist()


def test_global_tokens_that_nobody_belongs_to_are_a_segment_of_their_own() -> None:
    layout = Layout.packed([4], tags={"parent": [1, 1, 3, -1], "segment": [0, 0, 7, 7]})
    read = Structure.read(layout, block=27, most=9)
    assert read.globals.sites.tags["segment"].tolist() == [-1, 0, -1, 7]


def test_padded_rows_belong_to_nothing() -> None:
    mask = np.array([[1] * 5, [1, 1, 0, 0, 0]], bool)
    read = Structure.read(Layout.padded(mask), block=2, most=9)
    assert read.globals.lengths.tolist() == [8, 3]
    assert read.long.sites.tags["parent"].tolist() == [5, 5, 6, 6, 7, 2, 2, -1, -1, -1]


def test_a_flat_structure_tells_parents_only() -> None:
    made = Structure.packed([hotpot([7], [([30], [[31]])], first=10).outline]).flat()
    assert set(made.long.sites.tags) == {"parent"}
    assert not made.globals.sites.tags


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"parent": [0, 2]}, "`parent` must be less than the 2 global tokens, but is 2. Count from 0"),
        ({"paragraph": [0]}, r"`paragraph` must be of shape \(2,\), but is \(1,\)"),
        ({"types": [0]}, r"`types` must be of shape \(2,\)"),
    ],
)
def test_outlines_that_contradict_themselves_are_errors(columns: dict[str, list[int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Outline(**{"words": np.ones(2, np.int32), "parent": np.zeros(2, np.int32)} | columns)  # type: ignore[arg-type]


def test_batches_that_cannot_be_are_errors() -> None:
    typed = trivia([7], [[30]], first=10, separator=9).outline
    with pytest.raises(InputError, match="`types` must be given in all outlines or in none"):
        Structure.packed([typed, blocks(3, 2)])
    with pytest.raises(InputError, match="`outlines` must be a list of at least one"):
        Structure.packed([])
