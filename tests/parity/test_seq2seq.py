"""LED against transformers: scores, losses and gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor

from longspan.errors import InputError
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import shift_right
from longspan.layout import Layout
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from parity import led

LENGTHS, WRITTEN = (37, 20, 1), (11, 7, 3)
DOCUMENTS = Layout.packed(LENGTHS, marked=[[0]] * 3)
TEXTS = Layout.packed(WRITTEN)


@pytest.fixture(scope="module")
def models() -> tuple[Any, Seq2SeqLM]:
    return led.pair()


@pytest.fixture(scope="module")
def given() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    ids, labels = (torch.randint(3, led.VOCAB, (sum(sizes),), generator=draw) for sizes in (LENGTHS, WRITTEN))
    labels[4] = IGNORE_INDEX
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
    models: tuple[Any, Seq2SeqLM], given: tuple[Tensor, Tensor]
) -> None:
    (peer, ours), (ids, labels) = models, given
    found = peer(**theirs(ids), labels=padded(labels, WRITTEN, IGNORE_INDEX))
    wanted = torch.cat([one[:n] for one, n in zip(found.logits, WRITTEN, strict=True)])
    scores = ours(ids, DOCUMENTS, shift_right(labels, TEXTS, ours.backbone.config), TEXTS)
    assert torch.allclose(scores, wanted, atol=1e-6)
    assert abs(ours.loss(ids, DOCUMENTS, labels, TEXTS) - found.loss) < 1e-6


def test_gradients_are_those_of_transformers(
    models: tuple[Any, Seq2SeqLM], given: tuple[Tensor, Tensor]
) -> None:
    (peer, ours), (ids, labels) = models, given
    for model in (peer, ours):
        model.zero_grad()
    peer(**theirs(ids), labels=padded(labels, WRITTEN, IGNORE_INDEX)).loss.backward()
    ours.loss(ids, DOCUMENTS, labels, TEXTS).backward()
    state = dict(peer.named_parameters())
    for name, parameter in ours.named_parameters():
        wanted = torch.cat([state[key].grad for key in led.keys(name)])
        assert parameter.grad is not None
        if name.endswith("words.weight"):
            parameter.grad[1] = wanted[1]  # transformers' table does not learn from padding that is looked up
        assert torch.allclose(parameter.grad, wanted, atol=1e-5 * max(1.0, float(wanted.abs().max()))), name


def test_smoothing_is_that_of_torch(models: tuple[Any, Seq2SeqLM], given: tuple[Tensor, Tensor]) -> None:
    (_, ours), (ids, labels) = models, given
    scores = ours(ids, DOCUMENTS, shift_right(labels, TEXTS, ours.backbone.config), TEXTS)
    wanted = torch.nn.functional.cross_entropy(scores, labels, label_smoothing=0.1)
    assert torch.allclose(ours.loss(ids, DOCUMENTS, labels, TEXTS, label_smoothing=0.1), wanted)


def test_padded_batches_give_what_transformers_gives(
    models: tuple[Any, Seq2SeqLM], given: tuple[Tensor, Tensor]
) -> None:
    peer, ours = models
    ids, labels = given
    inputs, wanted = theirs(ids), padded(labels, WRITTEN, IGNORE_INDEX)
    expected, found = peer(**inputs, labels=wanted), ours(**inputs, labels=wanted)
    written = padded(torch.ones_like(labels), WRITTEN, 0) != 0
    torch.testing.assert_close(found.loss, expected.loss, rtol=0, atol=1e-6)
    torch.testing.assert_close(found.logits[written], expected.logits[written], rtol=0, atol=1e-6)
    decoder = padded(shift_right(labels, TEXTS, ours.backbone.config), WRITTEN, 1)
    seen = padded(torch.ones_like(labels), WRITTEN, 0)
    again = ours(**inputs, decoder_input_ids=decoder, decoder_attention_mask=seen)
    torch.testing.assert_close(again.logits, found.logits)
    with pytest.raises(InputError, match="`labels` must be given, or decoder_input_ids"):
        ours(**inputs)


@pytest.mark.parametrize("options", [{"num_beams": 1}, {"num_beams": 3, "num_return_sequences": 2}])
def test_generate_writes_the_tokens_of_transformers(
    models: tuple[Any, Seq2SeqLM], given: tuple[Tensor, Tensor], options: dict[str, Any]
) -> None:
    peer, ours = models
    inputs = theirs(given[0])
    limits: dict[str, Any] = {"max_new_tokens": 9, **options}
    expected = peer.generate(**inputs, **limits, do_sample=False)
    assert torch.equal(ours.generate(**inputs, **limits), expected)
    by_hand = Seq2SeqLM(ours.backbone, ours.head)
    with pytest.raises(InputError, match="`model` must be built for a task to generate"):
        by_hand.generate(**inputs)
