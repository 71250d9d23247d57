"""Texts and scores against transformers' `generate`, token for token."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.generation.config import GenerationConfig
from longspan.generation.generate import generate
from longspan.generation.logits_process import process_logits, warp_logits
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
NAMES = {
    "num_beams": "num_beams",
    "max_new_tokens": "max_new_tokens",
    "min_new_tokens": "min_new_tokens",
    "no_repeat_ngram_size": "no_repeat_ngram_size",
    "forced_bos_token_id": "forced_bos_token_id",
    "forced_eos_token_id": "forced_eos_token_id",
    "bad_words_ids": "bad_words_ids",
    "num_return_sequences": "num_return_sequences",
}
"""What transformers calls these options."""


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
    rows = list(ids.split(LENGTHS))
    batch = torch.nn.utils.rnn.pad_sequence(rows, True, PAD)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], True, 0)
    marked = torch.zeros_like(mask)
    marked[:, 0] = 1
    asked = {NAMES.get(name, name): value for name, value in settings.items()}
    if "bad_words_ids" in asked:
        asked["bad_words_ids"] = [list(word) for word in asked["bad_words_ids"]]
    documents = {"input_ids": batch, "attention_mask": mask, "global_attention_mask": marked}
    return peer.generate(
        **documents, **asked, do_sample=False, return_dict_in_generate=True, output_scores=True
    )


def tokens(sequences: Tensor) -> list[tuple[int, ...]]:
    """Texts without what was given before and what fills up behind."""
    found = sequences[:, 1:].tolist()
    return [tuple(text[: text.index(END) + 1] if END in text else text) for text in found]


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


def processors(options: GenerationConfig, start: int) -> Any:
    """Transformers' rules in the order that `generate` gives them."""
    made = transformers.generation.logits_process
    rules: list[Any] = []
    if options.no_repeat_ngram_size:
        rules.append(made.NoRepeatNGramLogitsProcessor(options.no_repeat_ngram_size))
    if options.bad_words_ids:
        rules.append(made.NoBadWordsLogitsProcessor([list(word) for word in options.bad_words_ids], END))
    if options.min_new_tokens:
        rules.append(made.MinNewTokensLengthLogitsProcessor(start, options.min_new_tokens, END))
    if options.forced_bos_token_id is not None:
        rules.append(made.ForcedBOSTokenLogitsProcessor(options.forced_bos_token_id))
    if options.forced_eos_token_id is not None:
        assert options.max_new_tokens is not None
        rules.append(
            made.ForcedEOSTokenLogitsProcessor(start + options.max_new_tokens, options.forced_eos_token_id)
        )
    return made.LogitsProcessorList(rules)


def test_rules_forbid_what_transformers_forbids() -> None:
    draw = np.random.default_rng(0)
    for _ in range(300):
        count, length, vocab = draw.integers(1, 5), draw.integers(1, 12), 7
        words = tuple(tuple(draw.integers(0, vocab, draw.integers(1, 4)).tolist()) for _ in range(4))
        options = GenerationConfig(
            no_repeat_ngram_size=int(draw.integers(0, 5)),
            min_new_tokens=int(draw.integers(0, 7)),
            max_new_tokens=int(draw.integers(7, 12)),
            bad_words_ids=((3,), *words) if draw.random() < 0.5 else (),
            forced_bos_token_id=5 if draw.random() < 0.3 else None,
            forced_eos_token_id=END if draw.random() < 0.3 else None,
        )
        written = draw.integers(0, vocab, (count, length))
        scores = torch.from_numpy(draw.standard_normal((count, vocab)).astype(np.float32))
        wanted = processors(options, 1)(torch.from_numpy(written), scores)
        assert torch.equal(process_logits(scores.clone(), written, options, eos=END), wanted), options


def test_words_are_drawn_from_the_scores_of_transformers() -> None:
    made, draw = transformers.generation.logits_process, np.random.default_rng(0)
    for _ in range(100):
        scores = torch.from_numpy(draw.standard_normal((3, 50)).astype(np.float32)) * 3
        scores[0, 7], scores[1, 3] = -torch.inf, scores[1, 4]
        temperature, top_k, top_p = (
            float(draw.uniform(0.2, 3)),
            int(draw.integers(1, 60)),
            float(draw.random()),
        )
        steps: list[Any] = [
            made.TemperatureLogitsWarper(temperature),
            made.TopKLogitsWarper(top_k),
            made.TopPLogitsWarper(top_p),
        ]
        wanted: Any = made.LogitsProcessorList(steps)(torch.zeros(3, 1, dtype=torch.long), scores)
        options = GenerationConfig(
            do_sample=True, temperature=temperature, top_k=top_k, top_p=max(top_p, 1e-9)
        )
        assert torch.equal(warp_logits(scores, options), wanted)


def test_a_document_is_written_about_as_if_it_were_alone(models: tuple[Any, Seq2SeqLM], ids: Tensor) -> None:
    ending(models, OFTEN)
    options = GenerationConfig(num_beams=3, max_new_tokens=17)
    together = generate(models[1], ids, DOCUMENTS, options)
    alone: list[list[Hypothesis]] = []
    for part in ids.split(LENGTHS):
        alone += generate(models[1], part, Layout.packed([len(part)], marked=[[0]]), options)
    assert [text.tokens for (text,) in together] == [text.tokens for (text,) in alone]
