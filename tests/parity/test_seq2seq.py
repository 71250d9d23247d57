"""LED against transformers: scores, losses and gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor

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
