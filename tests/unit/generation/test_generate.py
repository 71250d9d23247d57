"""Texts about several documents: what is kept between steps, streaming, stopping, drawing, bad input."""

from typing import Any

import numpy as np
import pytest
import torch

from longspan.errors import InputError
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.generation.config import GenerationConfig
from longspan.generation.generate import generate
from longspan.generation.logits_process import LogitsProcessor
from longspan.generation.search import BeamSearch, Hypothesis, Sampler
from longspan.layout import Layout
from unit.generation.tiny import DOCUMENTS, END, LENGTHS, VOCAB, ids, writer

GREEDY, BEAMS = (
    GenerationConfig(max_new_tokens=14),
    GenerationConfig(num_beams=4, num_return_sequences=3, max_new_tokens=14, no_repeat_ngram_size=3),
)


@pytest.fixture(scope="module")
def model() -> Seq2SeqLM:
    return writer()


def tokens(found: list[list[Hypothesis]]) -> list[list[tuple[int, ...]]]:
    return [[text.tokens for text in texts] for texts in found]


def without_memory(model: Seq2SeqLM, document: torch.Tensor, options: GenerationConfig) -> list[Hypothesis]:
    """The plain way: before every word the whole text is decoded anew, once for each beam."""
    config = model.backbone.config
    options = options.fitting(positions=config.positions, vocab=config.vocab_size)
    search = (BeamSearch if options.num_beams > 1 else Sampler)(options, config.start_id, [config.eos_id])
    more = True
    while more:
        count, length = search.tokens.shape
        layout = Layout.packed([len(document)] * count, marked=[[0]] * count)
        written, places = torch.from_numpy(search.tokens.reshape(-1)), Layout.packed([length] * count)
        with torch.no_grad():
            scores = model(document.repeat(count), layout, written, places)[length - 1 :: length]
        scores = scores.log_softmax(-1) if options.num_beams > 1 else scores
        scores = LogitsProcessor(options, [config.eos_id])(scores, search.tokens)
        more = search.advance(scores, np.zeros(count, np.int64))
    return search.results()


@pytest.mark.parametrize(
    "options", [GREEDY, BEAMS, BEAMS.but(min_new_tokens=14)], ids=["greedy", "num_beams", "long"]
)
@pytest.mark.parametrize("ending", [-2.0, 4.0])
def test_what_is_kept_between_steps_changes_nothing(options: GenerationConfig, ending: float) -> None:
    model = writer(ending=ending)
    together = generate(model, ids(), DOCUMENTS, options)
    for found, document in zip(together, ids().split(LENGTHS), strict=True):
        plain = without_memory(model, document, options)
        assert [text.tokens for text in found] == [text.tokens for text in plain]
        for one, other in zip(found, plain, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)


def test_more_rows_than_there_is_room_for_at_once_are_kept_too(
    model: Seq2SeqLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = tokens(generate(model, ids(), DOCUMENTS, BEAMS))
    monkeypatch.setattr("longspan.nn.decoder.ROOM", 5)
    assert tokens(generate(model, ids(), DOCUMENTS, BEAMS)) == wanted


def test_texts_longer_than_a_tile_see_all_of_themselves() -> None:
    model, options = (
        writer(positions=75, ending=-9.0),
        GenerationConfig(max_new_tokens=70, min_new_tokens=70, no_repeat_ngram_size=2),
    )
    (found, *_) = generate(model, ids(), DOCUMENTS, options)
    (plain,) = without_memory(model, ids()[: LENGTHS[0]], options)
    assert found[0].tokens == plain.tokens
    assert len(plain.tokens) == 70


@pytest.mark.parametrize(
    "options",
    [GREEDY, BEAMS.but(num_return_sequences=1), BEAMS.but(num_return_sequences=1, early_stopping=True)],
)
@pytest.mark.parametrize("ending", [-2.0, 4.0])
def test_the_tokens_told_are_the_tokens_of_the_texts(options: GenerationConfig, ending: float) -> None:
    model = writer(ending=ending)
    heard: dict[int, list[int]] = {0: [], 1: [], 2: []}
    found = generate(model, ids(), DOCUMENTS, options, on_token=lambda d, token: heard[d].append(token))
    assert [texts[0].tokens for texts in found] == [tuple(heard[d]) for d in range(3)]
    assert tokens(found) == tokens(generate(model, ids(), DOCUMENTS, options))


@pytest.mark.parametrize("options", [GREEDY, BEAMS.but(num_return_sequences=1)], ids=["greedy", "num_beams"])
def test_a_listener_ends_one_text_and_not_the_others(model: Seq2SeqLM, options: GenerationConfig) -> None:
    options = options.but(min_new_tokens=14)
    whole = generate(model, ids(), DOCUMENTS, options)
    heard: dict[int, list[int]] = {0: [], 1: [], 2: []}

    def told(document: int, token: int) -> bool:
        heard[document].append(token)
        return document != 1 or len(heard[1]) < 3

    found = generate(model, ids(), DOCUMENTS, options, on_token=told)
    assert [texts[0].tokens for texts in found] == [
        whole[0][0].tokens,
        whole[1][0].tokens[:3],
        whole[2][0].tokens,
    ]
    assert [tuple(heard[d]) for d in range(3)] == [texts[0].tokens for texts in found]


@pytest.mark.parametrize("options", [GREEDY, BEAMS, GenerationConfig(do_sample=True, num_return_sequences=2)])
@pytest.mark.parametrize("after", [0, 4])
def test_all_stops_on_request_with_what_there_is(
    model: Seq2SeqLM, options: GenerationConfig, after: int
) -> None:
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    found = generate(
        model, ids(), DOCUMENTS, options.but(min_new_tokens=14), stop=stop, generator=torch.Generator()
    )
    assert asked == after + 1
    assert {len(text.tokens) for texts in found for text in texts} == {after}
    begun = options.num_return_sequences if after or options.do_sample else 1
    assert [len(texts) for texts in found] == [begun] * 3


def test_a_listener_hears_the_rest_when_all_is_stopped(model: Seq2SeqLM) -> None:
    heard: list[int] = []
    steps = iter([False] * 6)
    ((text,),) = generate(
        model,
        ids()[: LENGTHS[0]],
        Layout.packed(LENGTHS[:1]),
        BEAMS.but(num_return_sequences=1, min_new_tokens=14),
        on_token=lambda _, token: heard.append(token),
        stop=lambda: next(steps, True),
    )
    assert tuple(heard) == text.tokens
    assert len(heard) == 6


def test_draws_depend_on_the_generator_and_the_document_alone(model: Seq2SeqLM) -> None:
    options = GenerationConfig(
        do_sample=True, num_return_sequences=4, max_new_tokens=12, temperature=2.0, top_k=20, top_p=0.9
    )

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
def test_few_words_to_draw_from_are_few(model: Seq2SeqLM, narrow: dict[str, Any]) -> None:
    drawn = generate(model, ids(), DOCUMENTS, GenerationConfig(do_sample=True, max_new_tokens=9, **narrow))
    assert tokens(drawn) == tokens(generate(model, ids(), DOCUMENTS, GenerationConfig(max_new_tokens=9)))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            {"max_new_tokens": 32},
            "`max_new_tokens` must be at most 31, as many as there are positions, but is 32.",
        ),
        ({"min_new_tokens": 32}, "`min_new_tokens` must be at most 31"),
        (
            {"forced_bos_token_id": VOCAB},
            f"`forced_bos_token_id` must be below {VOCAB}, the number of words, but is {VOCAB}.",
        ),
        ({"forced_eos_token_id": 99}, "`forced_eos_token_id` must be below"),
        ({"bad_words_ids": [[1], [2, 50]]}, f"`bad_words_ids` must be below {VOCAB}"),
    ],
)
def test_what_the_model_cannot_do_is_told(model: Seq2SeqLM, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        generate(model, ids(), DOCUMENTS, GenerationConfig(**wrong))
    assert told in str(error.value)


def test_an_empty_document_is_refused_and_no_document_is_no_text(model: Seq2SeqLM) -> None:
    with pytest.raises(InputError, match="`document` must be at least one token long"):
        generate(model, ids()[:5], Layout.packed([5, 0]))
    assert generate(model, ids()[:0], Layout.packed([])) == []


def test_several_texts_cannot_be_streamed(model: Seq2SeqLM) -> None:
    with pytest.raises(InputError, match="`on_token` must be None where several texts are generated"):
        generate(model, ids(), DOCUMENTS, BEAMS, on_token=print)


@pytest.mark.parametrize(
    "options", [GREEDY, BEAMS, GenerationConfig(do_sample=True), GREEDY.but(forced_bos_token_id=5)]
)
def test_a_damaged_model_is_told(options: GenerationConfig) -> None:
    model = writer()
    with torch.no_grad():
        model.decoder.get_parameter("layers.1.feed_forward.up.weight")[3, 4] = torch.nan
    with pytest.raises(InputError, match="`scores` must be numbers"):
        generate(model, ids(), DOCUMENTS, options)


def test_the_end_is_the_last_token_or_the_text_is_as_long_as_it_may_be() -> None:
    for texts in generate(
        writer(ending=3.0),
        ids(),
        DOCUMENTS,
        GenerationConfig(num_beams=3, num_return_sequences=3, max_new_tokens=8),
    ):
        for text in texts:
            assert (text.tokens[-1] == END) or len(text.tokens) == 8
            assert END not in text.tokens[:-1]
