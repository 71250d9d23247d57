"""Texts and scores against transformers' `generate`, token for token."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.generation.config import GenerationConfig, tokens_of
from longspan.generation.generate import generate
from longspan.generation.logits_process import LogitsProcessor, warp_logits
from longspan.generation.search import BeamSearch, Hypothesis
from longspan.layout import Layout
from longspan.shapes import IntArray
from parity import led

END, PAD = 2, 1
LENGTHS = (37, 20, 1)
DOCUMENTS = Layout.packed(LENGTHS, marked=[[0]] * 3)
OFTEN, NEVER = 5.0, -30.0
"""What is added to the end's score."""
SETTINGS: list[tuple[float, dict[str, Any]]] = [
    (0.0, {"max_new_tokens": 20}),
    (OFTEN, {"max_new_tokens": 1}),
    (OFTEN, {"max_new_tokens": 9, "min_new_tokens": 6, "forced_bos_token_id": 7, "forced_eos_token_id": END}),
    (
        NEVER,
        {"max_new_tokens": 12, "no_repeat_ngram_size": 1, "bad_words_ids": ((5,), (7, 9), (11, END), (END,))},
    ),
    (OFTEN, {"max_new_tokens": 8, "min_new_tokens": 8, "no_repeat_ngram_size": 2}),
    (0.0, {"num_beams": 2, "max_new_tokens": 20}),
    (0.0, {"num_beams": 3, "max_new_tokens": 1, "num_return_sequences": 3}),
    (
        OFTEN,
        {
            "num_beams": 4,
            "max_new_tokens": 20,
            "length_penalty": 2.0,
            "early_stopping": True,
            "num_return_sequences": 4,
        },
    ),
    (
        OFTEN,
        {
            "num_beams": 3,
            "max_new_tokens": 14,
            "length_penalty": 0.0,
            "early_stopping": "never",
            "num_return_sequences": 2,
        },
    ),
    (
        OFTEN,
        {
            "num_beams": 5,
            "max_new_tokens": 14,
            "length_penalty": 3.7,
            "early_stopping": "never",
            "num_return_sequences": 3,
        },
    ),
    (
        OFTEN,
        {
            "num_beams": 4,
            "max_new_tokens": 17,
            "no_repeat_ngram_size": 3,
            "min_new_tokens": 5,
            "length_penalty": -0.5,
            "num_return_sequences": 2,
        },
    ),
    (
        OFTEN,
        {
            "num_beams": 6,
            "max_new_tokens": 9,
            "min_new_tokens": 9,
            "length_penalty": -2.0,
            "early_stopping": True,
        },
    ),
    (
        0.0,
        {
            "num_beams": 3,
            "max_new_tokens": 6,
            "bad_words_ids": ((5,), (7, 9), (11,), (3, 4, END)),
            "num_return_sequences": 2,
        },
    ),
    (
        OFTEN,
        {
            "num_beams": 4,
            "max_new_tokens": 11,
            "forced_bos_token_id": 7,
            "forced_eos_token_id": END,
            "no_repeat_ngram_size": 1,
            "num_return_sequences": 4,
        },
    ),
    (
        NEVER,
        {
            "num_beams": 2,
            "max_new_tokens": 14,
            "forced_bos_token_id": 0,
            "forced_eos_token_id": 4,
            "no_repeat_ngram_size": 4,
            "min_new_tokens": 3,
        },
    ),
    (
        NEVER,
        {
            "num_beams": 6,
            "max_new_tokens": 13,
            "length_penalty": 2.0,
            "early_stopping": True,
            "num_return_sequences": 6,
        },
    ),
]


@pytest.fixture(autouse=True)
def engine() -> str:
    """In float64 there is one engine, and the steps are tested without it: each test runs once."""
    return "native"


@pytest.fixture(scope="module")
def models() -> tuple[Any, Seq2SeqLM]:
    return led.pair()


@pytest.fixture(scope="module")
def ids() -> Tensor:
    return torch.randint(3, led.VOCAB, (sum(LENGTHS),), generator=torch.Generator().manual_seed(1))


def ending(models: tuple[Any, Seq2SeqLM], more: float) -> None:
    """Make the end of a text likelier in both models; the end's own score becomes `more`."""
    for model in models:
        name = "head.bias" if isinstance(model, Seq2SeqLM) else "final_logits_bias"
        model.get_buffer(name)[0, END] = more


def theirs(peer: Any, ids: Tensor, settings: dict[str, Any]) -> Any:
    """What transformers writes, the first token of each document being global."""
    rows = [ids] if len(ids) in LENGTHS else list(ids.split(LENGTHS))
    batch = torch.nn.utils.rnn.pad_sequence(rows, True, PAD)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], True, 0)
    marked = torch.zeros_like(mask)
    marked[:, 0] = 1
    asked = {"do_sample": False} | settings
    if "bad_words_ids" in asked:
        asked["bad_words_ids"] = [list(word) for word in asked["bad_words_ids"]]
    documents = {"input_ids": batch, "attention_mask": mask, "global_attention_mask": marked}
    return peer.generate(**documents, **asked, return_dict_in_generate=True, output_scores=True)


def tokens(sequences: Tensor, settings: dict[str, Any] | None = None) -> list[tuple[int, ...]]:
    """Texts without what was given before and what fills up behind."""
    ends = np.atleast_1d((settings or {}).get("eos_token_id", END))
    found = []
    for text in sequences[:, 1:].tolist():
        last = next((place for place, token in enumerate(text) if token in ends), len(text))
        found.append(tuple(text[: last + 1]))
    return found


@pytest.mark.parametrize(("more", "settings"), SETTINGS, ids=str)
def test_the_same_tokens_are_written(
    models: tuple[Any, Seq2SeqLM], ids: Tensor, more: float, settings: dict[str, Any]
) -> None:
    ending(models, more)
    wanted = theirs(models[0], ids, settings)
    found = [
        text for texts in generate(models[1], ids, DOCUMENTS, GenerationConfig(**settings)) for text in texts
    ]
    assert [text.tokens for text in found] == tokens(wanted.sequences)
    if wanted.get("sequences_scores") is not None:
        assert torch.allclose(
            torch.tensor([text.score for text in found]), wanted.sequences_scores, rtol=1e-4
        )


@pytest.mark.parametrize("kernel", ["native", "portable"])
def test_the_same_tokens_are_written_in_float32_where_the_choice_is_clear(
    ids: Tensor, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from helpers import without_native

    if kernel == "portable":
        without_native(monkeypatch)
    models = led.pair(torch.float32)
    ending(models, OFTEN)
    clear = total = 0
    for longest in (7, 20):
        wanted = theirs(models[0], ids, {"max_new_tokens": longest})
        best = torch.stack(wanted.scores).topk(2).values  # (steps, documents, 2)
        texts = generate(models[1], ids, DOCUMENTS, GenerationConfig(max_new_tokens=longest))
        for d, ((text,), other) in enumerate(zip(texts, tokens(wanted.sequences), strict=True)):
            margin = (best[: len(other), d, 0] - best[: len(other), d, 1]).min()
            total, clear = total + 1, clear + int(margin > 1e-4)
            assert margin <= 1e-4 or text.tokens == other
    assert clear > 0.8 * total


def test_the_same_beams_win_in_float32_where_the_choice_is_clear(
    ids: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = led.pair(torch.float32)
    ending(models, OFTEN)
    margins: dict[int, float] = {}
    advance = BeamSearch.advance

    def measured(self: BeamSearch, logits: Tensor, rows: IntArray) -> bool:
        totals = (logits + self.scores[:, None]).flatten().topk(2 * self.config.num_beams + 1).values
        gap = float((totals[:-1] - totals[1:]).nan_to_num(torch.inf).min())
        margins[id(self)] = min(gap, margins.get(id(self), torch.inf))
        return advance(self, logits, rows)

    monkeypatch.setattr(BeamSearch, "advance", measured)
    clear = total = 0
    for beams in (2, 4):
        margins.clear()
        wanted = tokens(theirs(models[0], ids, {"num_beams": beams, "max_new_tokens": 12}).sequences)
        texts = generate(models[1], ids, DOCUMENTS, GenerationConfig(num_beams=beams, max_new_tokens=12))
        for (text,), other, margin in zip(texts, wanted, margins.values(), strict=True):
            total, clear = total + 1, clear + int(margin > 1e-4)
            assert margin <= 1e-4 or text.tokens == other
    assert clear > 0.6 * total


FORBIDDING = (
    *("min_new_tokens", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids"),
    *("forced_bos_token_id", "forced_eos_token_id"),
)


def drawn_settings(draw: np.random.Generator) -> dict[str, Any]:
    """Settings of transformers, each of them in about a third of the cases."""

    def few(count: int) -> list[int]:
        return [int(word) for word in draw.integers(12, led.VOCAB, count)]

    beams = int(draw.integers(1, 5))
    choices: dict[str, Any] = {
        "min_new_tokens": int(draw.integers(1, 8)),
        "length_penalty": float(draw.uniform(-1, 3)),
        "early_stopping": [True, "never"][draw.integers(2)],
        "repetition_penalty": float(draw.uniform(0.6, 3)),
        "encoder_repetition_penalty": float(draw.uniform(0.6, 2)),
        "no_repeat_ngram_size": int(draw.integers(1, 4)),
        "encoder_no_repeat_ngram_size": int(draw.integers(1, 4)),
        "bad_words_ids": ((3,), tuple(few(2)), tuple(few(3))),
        "forced_bos_token_id": int(draw.integers(3, led.VOCAB)),
        "forced_eos_token_id": [END, [END, 7]][draw.integers(2)],
        "exponential_decay_length_penalty": (int(draw.integers(0, 9)), float(draw.uniform(1, 1.5))),
        "suppress_tokens": few(9),
        "begin_suppress_tokens": few(9),
        "renormalize_logits": True,
        "eos_token_id": [[END, 9, 11], END, 9][draw.integers(3)],
        "decoder_start_token_id": int(draw.integers(3, led.VOCAB)),
        "num_return_sequences": int(draw.integers(1, beams + 1)),
    }
    settings = {name: value for name, value in choices.items() if draw.random() < 0.35}
    if draw.random() < 0.35:
        sampling: dict[str, Any] = {
            "temperature": float(draw.uniform(0.3, 2)),
            "top_k": int(draw.integers(12, 40)),
            "top_p": float(draw.uniform(0.7, 1)),
            "min_p": float(draw.uniform(0, 0.02)),
            "typical_p": float(draw.uniform(0.7, 1)),
        }
        settings |= {"do_sample": True, "top_k": led.VOCAB}
        settings |= {name: value for name, value in sampling.items() if draw.random() < 0.5}
    if beams == 1:
        settings.pop("length_penalty", None)
        settings.pop("early_stopping", None)
    else:
        settings.pop("encoder_repetition_penalty", None)  # theirs reaches the first beam only
        if "forced_eos_token_id" in settings:  # of two that are forced none is the better one
            settings["forced_eos_token_id"] = END
    if "forced_bos_token_id" in settings:  # else nothing is allowed, where transformers takes what is not
        settings.pop("suppress_tokens", None)
    if "exponential_decay_length_penalty" in settings:  # of an end that is forbidden they make NaN
        for name in FORBIDDING:
            settings.pop(name, None)
    return settings | {"num_beams": beams, "max_new_tokens": int(draw.integers(8, 16))}


@pytest.mark.parametrize("seed", range(30))
def test_the_same_tokens_are_written_by_any_settings(
    models: tuple[Any, Seq2SeqLM], ids: Tensor, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending(models, 2.0)
    settings = drawn_settings(np.random.default_rng(seed))
    for document in ids.split(LENGTHS)[:2]:
        with monkeypatch.context() as patch:
            own = torch.randint(2**63 - 1, (), generator=torch.Generator().manual_seed(seed))
            drawn = partial(torch.multinomial, generator=torch.Generator().manual_seed(int(own)))
            patch.setattr(torch, "multinomial", drawn)  # LED itself draws from the global generator
            wanted = theirs(models[0], document, settings)
        layout = Layout.packed([len(document)], marked=[[0]])
        generator = torch.Generator().manual_seed(seed)
        (found,) = generate(models[1], document, layout, GenerationConfig(**settings), generator=generator)
        assert [text.tokens for text in found] == tokens(wanted.sequences, settings), settings
        if wanted.get("sequences_scores") is not None:
            scores = torch.tensor([text.score for text in found])
            assert torch.allclose(scores, wanted.sequences_scores, rtol=1e-4), settings


def test_rules_and_their_order_are_those_of_transformers() -> None:
    draw = np.random.default_rng(0)
    peer: Any = transformers.LEDForConditionalGeneration
    model: Any = type("Model", (), {"config": transformers.LEDConfig()})()
    model._merge_criteria_processor_list = lambda made, given: made
    for _ in range(300):
        settings = drawn_settings(draw)
        shape = int(draw.integers(1, 5)), int(draw.integers(1, settings["max_new_tokens"] + 1))
        written = draw.integers(0, led.VOCAB, shape)
        scores = 3 * torch.from_numpy(draw.standard_normal((len(written), led.VOCAB)).astype(np.float32))
        document = torch.from_numpy(draw.integers(0, led.VOCAB, (1, draw.integers(1, 30))))
        listed = settings | {
            "bad_words_ids": [list(word) for word in settings.get("bad_words_ids", ())] or None
        }
        asked: Any = transformers.GenerationConfig(**listed)
        asked.max_length, asked._eos_token_tensor = (
            settings["max_new_tokens"] + 1,
            torch.tensor(settings.get("eos_token_id", END)).reshape(-1),
        )
        rules = peer._get_logits_processor(model, asked, 1, document.expand(len(written), -1))
        wanted = rules(torch.from_numpy(written), scores)
        config = GenerationConfig(**settings)
        ours = LogitsProcessor(config, tokens_of(config.eos_token_id) or (END,), document[0].numpy())
        assert torch.equal(ours(scores.clone(), written), wanted), settings


def test_words_are_drawn_from_the_scores_of_transformers() -> None:
    made, draw = transformers.generation.logits_process, np.random.default_rng(0)
    for _ in range(100):
        scores = torch.from_numpy(draw.standard_normal((3, 50)).astype(np.float32)) * 3
        scores[0, 7], scores[1, 3] = -torch.inf, scores[1, 4]
        temperature, top_k, least = (
            float(draw.uniform(0.2, 3)),
            int(draw.integers(1, 60)),
            int(draw.integers(1, 4)),
        )
        top_p, min_p, typical_p = draw.uniform(0.001, 0.999, 3).tolist()
        steps: list[Any] = [
            made.TemperatureLogitsWarper(temperature),
            made.TopKLogitsWarper(top_k, min_tokens_to_keep=least),
            made.TopPLogitsWarper(top_p, min_tokens_to_keep=least),
            made.MinPLogitsWarper(min_p, min_tokens_to_keep=least),
            made.TypicalLogitsWarper(typical_p, min_tokens_to_keep=least),
        ]
        wanted: Any = made.LogitsProcessorList(steps)(torch.zeros(3, 1, dtype=torch.long), scores)
        options = GenerationConfig(
            do_sample=True,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            typical_p=typical_p,
        )
        assert torch.equal(warp_logits(scores, options, least=least), wanted)


def test_a_document_is_written_about_as_if_it_were_alone(models: tuple[Any, Seq2SeqLM], ids: Tensor) -> None:
    ending(models, OFTEN)
    options = GenerationConfig(num_beams=3, max_new_tokens=17)
    together = generate(models[1], ids, DOCUMENTS, options)
    alone: list[list[Hypothesis]] = []
    for part in ids.split(LENGTHS):
        alone += generate(models[1], part, Layout.packed([len(part)], marked=[[0]]), options)
    assert [text.tokens for (text,) in together] == [text.tokens for (text,) in alone]
