"""Long documents are cut or read in windows, and every token is spoken for once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.errors import InputError
from longspan.pipeline.documents import Document, prepare
from longspan.pipeline.global_tokens import Globals
from longspan.pipeline.options import Options
from longspan.tasks.registry import TASKS
from longspan.text.encoding import Encoding
from unit.tasks.tiny import model


def encoding(text: int, pair: int | None = None) -> Encoding:
    """Ids that count up, framed as RoBERTa frames a text or a pair."""
    source = [-1] + [0] * text + [-1] + ([] if pair is None else [-1] + [1] * pair + [-1])
    size = len(source)
    offsets = np.stack([np.arange(size), np.arange(size) + 1], axis=1)
    return Encoding(np.arange(size), np.zeros(size, np.int64), offsets, np.array(source))


def document(tokens: Encoding, task: str = "tag", **options: object) -> Document:
    (found,) = prepare(model("longformer", task), TASKS[task], ["text"], [tokens], Options().but(**options))
    return found


def test_a_document_that_fits_is_read_whole() -> None:
    assert document(encoding(62)).reading == (64, 0, 1)


def test_a_document_that_does_not_fit_is_an_error_that_names_the_repairs() -> None:
    with pytest.raises(
        InputError, match=r"`text` must be at most 64 tokens long, but is 65\. .*'window'.*'trunc"
    ):
        document(encoding(63))


def test_a_cut_document_keeps_its_first_tokens_and_its_closing_token() -> None:
    found = document(encoding(100), overflow="truncate", limit=10)
    assert found.pieces[0].rows.tolist() == [*range(9), 101]
    assert found.reading == (10, 92, 1)


def test_the_context_gives_way_to_the_question() -> None:
    found = document(encoding(4, 90), "answer", overflow="truncate", limit=20)
    assert found.pieces[0].rows.tolist() == [*range(19), 97]


def test_the_prompt_gives_way_to_the_choice() -> None:
    found = document(encoding(90, 4), "choose", overflow="truncate", limit=20)
    assert found.pieces[0].rows.tolist() == [*range(13), *range(91, 98)]


def test_of_two_texts_the_longer_one_gives_way() -> None:
    found = document(encoding(4, 90), "classify", overflow="window", limit=20)
    assert all(piece.rows[:7].tolist() == [*range(7)] for piece in found.pieces)


def test_a_question_that_leaves_no_room_is_an_error() -> None:
    with pytest.raises(InputError, match=r"`limit` must be more than the 64 tokens .* but is 64"):
        document(encoding(60, 90), "answer", overflow="window")


def test_a_limit_beyond_the_positions_is_an_error() -> None:
    with pytest.raises(
        InputError, match=r"`limit` must be at most 64, what the model reads at once, but is 65"
    ):
        document(encoding(3), limit=65)


@given(st.integers(1, 300), st.integers(5, 64), st.data())
def test_every_token_is_spoken_for_by_one_window(size: int, limit: int, data: st.DataObject) -> None:
    overlap = data.draw(st.none() | st.integers(0, limit - 3))
    found = document(encoding(size), overflow="window", limit=limit, overlap=overlap)
    owned = np.concatenate([piece.rows[piece.owned] for piece in found.pieces])
    assert sorted(owned.tolist()) == list(range(size + 2))
    assert found.reading == (size + 2, 0, len(found.pieces))
    for piece in found.pieces:
        assert len(piece.rows) <= limit
        assert piece.rows[0] == 0
        assert piece.rows[-1] == size + 1
    rows, values = found.joined([piece.rows.astype(np.float32) for piece in found.pieces])
    assert rows.tolist() == values.astype(int).tolist() == list(range(size + 2))


def test_a_token_is_taken_from_the_window_where_it_stands_most_centrally() -> None:
    found = document(encoding(14), overflow="window", limit=12, overlap=6)  # windows of tokens 1-10 and 5-14
    first, second = (piece.rows[piece.owned].tolist() for piece in found.pieces)
    assert first == [0, 1, 2, 3, 4, 5, 6, 7]
    assert second == [8, 9, 10, 11, 12, 13, 14, 15]


def test_a_global_token_is_global_in_every_window_that_holds_it() -> None:
    found = document(encoding(4, 90), "answer", overflow="window", limit=20)
    assert len(found.pieces) > 1
    for piece in found.pieces:
        assert np.flatnonzero(found.marked[piece.rows]).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (None, [0]),
        ("none", []),
        ("separators", [5]),
        ([1, 3], [1, 3]),
        (lambda tokens: [len(tokens) - 1], [5]),
        (Globals(spans=[(2, 4)]), [2, 3]),
        ({"mask": [[False, True, False, False, False, False]]}, [1]),
    ],
    ids=lambda value: "function" if callable(value) else str(value),
)
def test_global_tokens_may_be_chosen_in_many_ways(chosen: object, expected: list[int]) -> None:
    assert np.flatnonzero(document(encoding(4), "classify", global_tokens=chosen).marked).tolist() == expected


def test_a_contradiction_is_an_error() -> None:
    with pytest.raises(InputError, match="must agree"):
        document(encoding(4), global_tokens=Globals(indices=[0], rule="separators"))


def test_a_model_without_global_tokens_takes_none() -> None:
    with pytest.raises(InputError, match=r"`global_tokens` must be None for a model without global tokens"):
        prepare(
            model("bert", "tag"),
            TASKS["tag"],
            ["text"],
            [encoding(4)],
            Options(global_tokens="first"),
        )


@pytest.mark.parametrize("family", ["bigbird", "bert"])
def test_other_models_than_longformer_mark_nothing_by_default(family: str) -> None:
    (found,) = prepare(model(family, "classify"), TASKS["classify"], ["text"], [encoding(4)], Options())
    assert not found.marked.any()


def test_no_tokens_at_all_are_an_error() -> None:
    nothing = np.zeros(0, np.int64)
    with pytest.raises(InputError, match=r"`text` must be at least one token long"):
        document(Encoding(nothing, nothing, nothing.reshape(0, 2), nothing))
