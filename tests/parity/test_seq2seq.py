"""LED against transformers: scores, losses, gradients, and the very tokens that are written."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longspan.errors import InputError
from longspan.generation.options import Writing
from longspan.generation.run import generate
from longspan.layout import Layout
from longspan.models.seq2seq import IGNORED, Seq2Seq, shifted
from parity import led

LENGTHS, WRITTEN = (37, 20, 1), (11, 7, 3)
DOCUMENTS = Layout.packed(LENGTHS, marked=[[0]] * 3)
TEXTS = Layout.packed(WRITTEN)
SETTINGS: list[dict[str, Any]] = [
    {"longest": 20},
    {"longest": 20, "no_repeat": 2},
    {"longest": 9, "shortest": 6, "first_id": 7, "last_id": 2},
    {"beams": 2, "longest": 20},
    {"beams": 4, "longest": 20, "length_penalty": 2.0, "early_stopping": True},
    {"beams": 3, "longest": 20, "length_penalty": 0.0, "early_stopping": "never"},
    {"beams": 4, "longest": 23, "no_repeat": 3, "shortest": 5, "length_penalty": -0.5},
    {"beams": 3, "longest": 6, "bad_words": ((5,), (7, 9), (11,)), "count": 2},
]
"""How texts are written; transformers' names of these options are in `theirs`."""


@pytest.fixture(scope="module")
def models() -> tuple[Any, Seq2Seq]:
    return led.pair()


@pytest.fixture(scope="module")
def given() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    ids, labels = (torch.randint(3, led.VOCAB, (sum(sizes),), generator=draw) for sizes in (LENGTHS, WRITTEN))
    labels[4] = IGNORED
    return ids, labels


def padded(rows: Tensor, lengths: tuple[int, ...], fill: int) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(rows.split(list(lengths))), True, fill)


def theirs(ids: Tensor) -> dict[str, Tensor]:
    """The documents as transformers takes them, the first token of each global."""
    batch, mask = padded(ids, LENGTHS, 1), padded(torch.ones_like(ids), LENGTHS, 0)
    marked = torch.zeros_like(mask)
    marked[:, 0] = 1
    return {"input_ids": batch, "attention_mask": mask, "global_attention_mask": marked}


def test_scores_and_losses_are_those_of_transformers(
    models: tuple[Any, Seq2Seq], given: tuple[Tensor, Tensor]
) -> None:
    (peer, ours), (ids, labels) = models, given
    found = peer(**theirs(ids), labels=padded(labels, WRITTEN, IGNORED))
    wanted = torch.cat([one[:n] for one, n in zip(found.logits, WRITTEN, strict=True)])
    scores = ours(ids, DOCUMENTS, shifted(labels, TEXTS, ours.config), TEXTS)
    assert torch.allclose(scores, wanted, atol=1e-6)
    assert abs(ours.loss(ids, DOCUMENTS, labels, TEXTS) - found.loss) < 1e-6


def test_gradients_are_those_of_transformers(
    models: tuple[Any, Seq2Seq], given: tuple[Tensor, Tensor]
) -> None:
    (peer, ours), (ids, labels) = models, given
    for model in (peer, ours):
        model.zero_grad()
    peer(**theirs(ids), labels=padded(labels, WRITTEN, IGNORED)).loss.backward()
    ours.loss(ids, DOCUMENTS, labels, TEXTS).backward()
    state = dict(peer.named_parameters())
    for name, parameter in ours.named_parameters():
        wanted = torch.cat([state[key].grad for key in led.keys(name)])
        assert parameter.grad is not None
        if name.endswith("words.weight"):
            parameter.grad[1] = wanted[1]  # transformers' table does not learn from padding that is looked up
        assert torch.allclose(parameter.grad, wanted, atol=1e-5 * max(1.0, float(wanted.abs().max()))), name


def test_smoothing_is_that_of_torch(models: tuple[Any, Seq2Seq], given: tuple[Tensor, Tensor]) -> None:
    (_, ours), (ids, labels) = models, given
    scores = ours(ids, DOCUMENTS, shifted(labels, TEXTS, ours.config), TEXTS)
    wanted = torch.nn.functional.cross_entropy(scores, labels, label_smoothing=0.1)
    assert torch.allclose(ours.loss(ids, DOCUMENTS, labels, TEXTS, smoothing=0.1), wanted)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_same_tokens_are_written(
    models: tuple[Any, Seq2Seq], given: tuple[Tensor, Tensor], settings: dict[str, Any]
) -> None:
    (peer, ours), (ids, _) = models, given
    names = {
        "beams": "num_beams",
        "longest": "max_new_tokens",
        "shortest": "min_new_tokens",
        "no_repeat": "no_repeat_ngram_size",
        "first_id": "forced_bos_token_id",
        "last_id": "forced_eos_token_id",
        "bad_words": "bad_words_ids",
        "count": "num_return_sequences",
    }
    asked = {names.get(name, name): value for name, value in settings.items()}
    if "bad_words_ids" in asked:
        asked["bad_words_ids"] = [list(word) for word in asked["bad_words_ids"]]
    found = peer.generate(**theirs(ids), do_sample=False, **asked)[:, 1:].tolist()
    wanted = [tuple(text[: text.index(2) + 1] if 2 in text else text) for text in found]
    written = generate(ours, ids, DOCUMENTS, Writing(**settings))
    assert [text.tokens for texts in written for text in texts] == wanted


def test_a_document_is_written_about_as_if_it_were_alone(
    models: tuple[Any, Seq2Seq], given: tuple[Tensor, Tensor]
) -> None:
    (_, ours), (ids, _) = models, given
    options = Writing(beams=3, longest=17)
    together = generate(ours, ids, DOCUMENTS, options)
    for texts, part, length in zip(together, ids.split(list(LENGTHS)), LENGTHS, strict=True):
        (alone,) = generate(ours, part, Layout.packed([length], marked=[[0]]), options)
        assert [text.tokens for text in alone] == [text.tokens for text in texts]


def test_the_kept_rows_change_nothing(models: tuple[Any, Seq2Seq], given: tuple[Tensor, Tensor]) -> None:
    (_, ours), (ids, _) = models, given
    ((text,), *_) = generate(ours, ids, DOCUMENTS, Writing(longest=13, shortest=13))
    first, document = ids[: LENGTHS[0]], Layout.packed(LENGTHS[:1], marked=[[0]])
    for n in range(1, 13):
        begun = torch.tensor([ours.config.start_id, *text.tokens[: n - 1]])
        scores = ours(first, document, begun, Layout.packed([n]))[-1]
        scores[ours.config.eos_id] = -torch.inf
        assert int(scores.argmax()) == text.tokens[n - 1]


def test_draws_depend_on_the_generator_alone(
    models: tuple[Any, Seq2Seq], given: tuple[Tensor, Tensor]
) -> None:
    (_, ours), (ids, _) = models, given
    options = Writing(sample=True, count=4, longest=12, temperature=2.0, top_k=20, top_p=0.9)

    def written(seed: int, documents: int = 3) -> list[list[tuple[int, ...]]]:
        layout = Layout.packed(LENGTHS[:documents], marked=[[0]] * documents)
        found = generate(
            ours, ids[: layout.size], layout, options, generator=torch.Generator().manual_seed(seed)
        )
        return [[text.tokens for text in texts] for texts in found]

    assert written(0) == written(0)
    assert written(0) != written(1)
    assert written(0, documents=2) == written(0)[:2]
    assert len(set(written(0)[0])) > 1


def test_few_words_to_draw_from_are_few(models: tuple[Any, Seq2Seq], given: tuple[Tensor, Tensor]) -> None:
    (_, ours), (ids, _) = models, given
    greedy = generate(ours, ids, DOCUMENTS, Writing(longest=9))
    for narrow in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-5}):
        drawn = generate(ours, ids, DOCUMENTS, Writing(sample=True, longest=9, **narrow))
        assert [text.tokens for (text,) in drawn] == [text.tokens for (text,) in greedy]


def test_tokens_are_told_as_they_come_and_can_be_stopped(
    models: tuple[Any, Seq2Seq], given: tuple[Tensor, Tensor]
) -> None:
    (_, ours), (ids, _) = models, given
    heard: dict[int, list[int]] = {0: [], 1: [], 2: []}

    def told(document: int, token: int) -> bool:
        heard[document].append(token)
        return document != 1 or len(heard[1]) < 3

    written = generate(ours, ids, DOCUMENTS, Writing(longest=9, shortest=9), told=told)
    assert [len(text.tokens) for (text,) in written] == [9, 3, 9]
    assert [list(text.tokens) for (text,) in written] == [heard[0], heard[1], heard[2]]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"beams": 0}, "`beams`"),
        ({"longest": 3, "shortest": 4}, "`shortest` must be at most `longest`, 3"),
        ({"count": 2}, "`count` must be at most the number of beams, 1"),
        ({"sample": True, "beams": 2}, "`beams` must be 1 where words are drawn"),
        ({"temperature": 0.5}, "sample=True"),
        ({"early_stopping": "soon"}, "`early_stopping`"),
        ({"penalty_form": "bert"}, "`penalty_form`"),
        ({"bad_words": ((),)}, "`bad_words`"),
    ],
)
def test_contradictory_options_are_told(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        Writing(**wrong)
    assert told in str(error.value)


def test_texts_longer_than_the_positions_and_empty_documents_are_refused(
    models: tuple[Any, Seq2Seq], given: tuple[Tensor, Tensor]
) -> None:
    (_, ours), (ids, _) = models, given
    with pytest.raises(InputError, match="at most 64, as many as there are positions"):
        generate(ours, ids, DOCUMENTS, Writing(longest=65))
    with pytest.raises(InputError, match="at least one token long"):
        generate(ours, ids[:0], Layout.packed([0]))


def test_plans_of_gathered_rows_cannot_be_trained_with() -> None:
    from longspan import attention, plan
    from longspan.patterns import Full

    made = plan(Full(), Layout.packed([1, 1]), Layout.packed([2, 2]), heads=1).gathered(
        np.array([0, 1, 0, 2]), 3
    )
    q, k = torch.randn(2, 1, 4), torch.randn(3, 1, 4)
    apart = plan(Full(), Layout.packed([1, 1]), Layout.packed([2, 2]), heads=1)
    keys = k[[0, 1, 0, 2]]
    assert torch.equal(attention(q, k, k, made), attention(q, keys, keys, apart))
    with pytest.raises(InputError, match="gathered"):
        attention(q.requires_grad_(), k, k, made)
