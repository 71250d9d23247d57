"""Texts about several documents: what is kept between steps, streaming, stopping, drawing, bad input."""

from typing import Any

import numpy as np
import pytest
import torch

from longspan.errors import InputError
from longspan.generation.options import Writing
from longspan.generation.rules import ruled
from longspan.generation.run import generate
from longspan.generation.search import Beams, Draws, Text
from longspan.layout import Layout
from longspan.models.writer import Writer
from unit.generation.tiny import DOCUMENTS, END, LENGTHS, VOCAB, ids, writer

GREEDY, BEAMS = Writing(longest=14), Writing(beams=4, count=3, longest=14, no_repeat=3)


@pytest.fixture(scope="module")
def model() -> Writer:
    return writer()


def tokens(found: list[list[Text]]) -> list[list[tuple[int, ...]]]:
    return [[text.tokens for text in texts] for texts in found]


def without_memory(model: Writer, document: torch.Tensor, options: Writing) -> list[Text]:
    """The plain way: before every word the whole text is decoded anew, once for each beam."""
    config = model.body.config
    options = options.fitting(positions=config.positions, vocab=config.vocab_size)
    search = (Beams if options.beams > 1 else Draws)(options, config.start_id, config.eos_id)
    more = True
    while more:
        count, length = search.tokens.shape
        layout = Layout.packed([len(document)] * count, marked=[[0]] * count)
        written, places = torch.from_numpy(search.tokens.reshape(-1)), Layout.packed([length] * count)
        with torch.no_grad():
            scores = model(document.repeat(count), layout, written, places)[length - 1 :: length]
        scores = scores.log_softmax(-1) if options.beams > 1 else scores
        scores = ruled(scores, search.tokens, options, eos=config.eos_id)
        more = search.advance(scores, np.zeros(count, np.int64))
    return search.results()


@pytest.mark.parametrize("options", [GREEDY, BEAMS, BEAMS.but(shortest=14)], ids=["greedy", "beams", "long"])
@pytest.mark.parametrize("ending", [-2.0, 4.0])
def test_what_is_kept_between_steps_changes_nothing(options: Writing, ending: float) -> None:
    model = writer(ending=ending)
    together = generate(model, ids(), DOCUMENTS, options)
    for found, document in zip(together, ids().split(LENGTHS), strict=True):
        plain = without_memory(model, document, options)
        assert [text.tokens for text in found] == [text.tokens for text in plain]
        for one, other in zip(found, plain, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)


def test_more_rows_than_there_is_room_for_at_once_are_kept_too(
    model: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = tokens(generate(model, ids(), DOCUMENTS, BEAMS))
    monkeypatch.setattr("longspan.nn.decoder.ROOM", 5)
    assert tokens(generate(model, ids(), DOCUMENTS, BEAMS)) == wanted


def test_texts_longer_than_a_tile_see_all_of_themselves() -> None:
    model, options = writer(positions=75, ending=-9.0), Writing(longest=70, shortest=70, no_repeat=2)
    (found, *_) = generate(model, ids(), DOCUMENTS, options)
    (plain,) = without_memory(model, ids()[: LENGTHS[0]], options)
    assert found[0].tokens == plain.tokens
    assert len(plain.tokens) == 70


@pytest.mark.parametrize("options", [GREEDY, BEAMS.but(count=1), BEAMS.but(count=1, early_stopping=True)])
@pytest.mark.parametrize("ending", [-2.0, 4.0])
def test_the_tokens_told_are_the_tokens_of_the_texts(options: Writing, ending: float) -> None:
    model = writer(ending=ending)
    heard: dict[int, list[int]] = {0: [], 1: [], 2: []}
    found = generate(model, ids(), DOCUMENTS, options, told=lambda d, token: heard[d].append(token))
    assert [texts[0].tokens for texts in found] == [tuple(heard[d]) for d in range(3)]
    assert tokens(found) == tokens(generate(model, ids(), DOCUMENTS, options))


@pytest.mark.parametrize("options", [GREEDY, BEAMS.but(count=1)], ids=["greedy", "beams"])
def test_a_listener_ends_one_text_and_not_the_others(model: Writer, options: Writing) -> None:
    options = options.but(shortest=14)
    whole = generate(model, ids(), DOCUMENTS, options)
    heard: dict[int, list[int]] = {0: [], 1: [], 2: []}

    def told(document: int, token: int) -> bool:
        heard[document].append(token)
        return document != 1 or len(heard[1]) < 3

    found = generate(model, ids(), DOCUMENTS, options, told=told)
    assert [texts[0].tokens for texts in found] == [
        whole[0][0].tokens,
        whole[1][0].tokens[:3],
        whole[2][0].tokens,
    ]
    assert [tuple(heard[d]) for d in range(3)] == [texts[0].tokens for texts in found]


@pytest.mark.parametrize("options", [GREEDY, BEAMS, Writing(sample=True, count=2)])
@pytest.mark.parametrize("after", [0, 4])
def test_all_stops_on_request_with_what_there_is(model: Writer, options: Writing, after: int) -> None:
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    found = generate(
        model, ids(), DOCUMENTS, options.but(shortest=14), stop=stop, generator=torch.Generator()
    )
    assert asked == after + 1
    assert {len(text.tokens) for texts in found for text in texts} == {after}
    begun = options.count if after or options.sample else 1
    assert [len(texts) for texts in found] == [begun] * 3


def test_a_listener_hears_the_rest_when_all_is_stopped(model: Writer) -> None:
    heard: list[int] = []
    steps = iter([False] * 6)
    ((text,),) = generate(
        model,
        ids()[: LENGTHS[0]],
        Layout.packed(LENGTHS[:1]),
        BEAMS.but(count=1, shortest=14),
        told=lambda _, token: heard.append(token),
        stop=lambda: next(steps, True),
    )
    assert tuple(heard) == text.tokens
    assert len(heard) == 6


def test_draws_depend_on_the_generator_and_the_document_alone(model: Writer) -> None:
    options = Writing(sample=True, count=4, longest=12, temperature=2.0, top_k=20, top_p=0.9)

    def written(seed: int, documents: int = 3) -> list[list[tuple[int, ...]]]:
        layout = Layout.packed(LENGTHS[:documents], marked=[[0]] * documents)
        draw = torch.Generator().manual_seed(seed)
        return tokens(generate(model, ids()[: layout.size], layout, options, generator=draw))

    torch.manual_seed(0)
    first = written(0)
    torch.manual_seed(1)
    assert written(0) == first != written(1)
    assert written(0, documents=2) == first[:2]
    assert len(set(first[0])) > 1


@pytest.mark.parametrize("narrow", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-5}], ids=str)
def test_few_words_to_draw_from_are_few(model: Writer, narrow: dict[str, Any]) -> None:
    drawn = generate(model, ids(), DOCUMENTS, Writing(sample=True, longest=9, **narrow))
    assert tokens(drawn) == tokens(generate(model, ids(), DOCUMENTS, Writing(longest=9)))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"longest": 32}, "`longest` must be at most 31, as many as there are positions, but is 32."),
        ({"shortest": 32}, "`shortest` must be at most 31"),
        ({"first_id": VOCAB}, f"`first_id` must be below {VOCAB}, the number of words, but is {VOCAB}."),
        ({"last_id": 99}, "`last_id` must be below"),
        ({"bad_words": [[1], [2, 50]]}, f"`bad_words` must be below {VOCAB}"),
    ],
)
def test_what_the_model_cannot_do_is_told(model: Writer, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        generate(model, ids(), DOCUMENTS, Writing(**wrong))
    assert told in str(error.value)


def test_an_empty_document_is_refused_and_no_document_is_no_text(model: Writer) -> None:
    with pytest.raises(InputError, match="`document` must be at least one token long"):
        generate(model, ids()[:5], Layout.packed([5, 0]))
    assert generate(model, ids()[:0], Layout.packed([])) == []


def test_several_texts_cannot_be_streamed(model: Writer) -> None:
    with pytest.raises(InputError, match="`told` must be None where several texts are written"):
        generate(model, ids(), DOCUMENTS, BEAMS, told=print)


@pytest.mark.parametrize("options", [GREEDY, BEAMS, Writing(sample=True), GREEDY.but(first_id=5)])
def test_a_damaged_model_is_told(options: Writing) -> None:
    model = writer()
    with torch.no_grad():
        model.decoder.get_parameter("layers.1.feed_forward.up.weight")[3, 4] = torch.nan
    with pytest.raises(InputError, match="`scores` must be numbers"):
        generate(model, ids(), DOCUMENTS, options)


def test_the_end_is_the_last_token_or_the_text_is_as_long_as_it_may_be() -> None:
    for texts in generate(writer(ending=3.0), ids(), DOCUMENTS, Writing(beams=3, count=3, longest=8)):
        for text in texts:
            assert (text.tokens[-1] == END) or len(text.tokens) == 8
            assert END not in text.tokens[:-1]
