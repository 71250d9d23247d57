"""Masked language modeling: the loss of masked rows alone, and bits by hand."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.corpus.store import Corpus
from longspan.errors import InputError
from longspan.families.config import Units
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import hidden
from longspan.recipes.masking import Masking
from longspan.recipes.mlm import EVALUATED, Vocabulary, evaluate_masked, masked_loss
from longspan.shapes import IntArray
from longspan.tasks.fill import hidden_rows
from longspan.text.tokenizer import Tokenizer
from unit.corpus.small import corpus, tokenizer
from unit.recipes.small import masked, model


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus(tmp_path_factory.mktemp("corpus"), 5)


@pytest.mark.parametrize("preset", ["longformer-base", "modernbert-base", "eurobert-210m", "bert-base"])
def test_loss_and_gradients_are_those_of_all_logits(small: Corpus, preset: str) -> None:
    more = {"kv_heads": 1} if preset.startswith("eurobert") else {}
    own, batch = model(preset, **more).double().eval(), masked(small).batch(np.array([3, 0]), 1)
    assert isinstance(batch.labels, Tensor)
    loss = masked_loss(own, batch)
    logits = own(batch.ids, batch.layout)
    wanted = F.cross_entropy(logits, batch.labels, ignore_index=IGNORE_INDEX, reduction="sum")
    assert loss.weight == (batch.labels != IGNORE_INDEX).sum()
    torch.testing.assert_close(loss.total, wanted)
    used = [p for p in own.parameters() if p.requires_grad]
    for mine, right in zip(
        torch.autograd.grad(loss.total, used, allow_unused=True),
        torch.autograd.grad(wanted, used, allow_unused=True),
        strict=True,
    ):
        assert (mine is None) == (right is None)
        if mine is not None:
            torch.testing.assert_close(mine, right)


def test_a_batch_depends_on_examples_and_epoch_alone(small: Corpus) -> None:
    data = masked(small)
    first, again, later = (data.batch(np.array([2, 4]), epoch) for epoch in (5, 5, 6))
    assert torch.equal(first.ids, again.ids)
    assert not torch.equal(first.ids, later.ids)
    alone = data.batch(np.array([4]), 5)
    assert torch.equal(first.ids[int(data.lengths[2]) :], alone.ids)
    assert first.index == (2, 4)
    assert first.layout.lengths.tolist() == data.lengths[[2, 4]].tolist()


def test_bits_are_those_computed_by_hand(small: Corpus) -> None:
    own, data = model().eval(), masked(small, Masking(unit="word"), seed=3)
    nats = tokens = characters = 0.0
    for example in range(len(data.lengths)):
        seen = data.masked(example, EVALUATED)
        batch = data.batch(np.array([example]), EVALUATED)
        with torch.no_grad():
            likely = own(batch.ids, batch.layout).double().log_softmax(-1)
        for row, target in zip(seen.rows, seen.targets, strict=True):
            nats -= float(likely[row, target])
            tokens += 1
            characters += len(tokenizer().decode([int(target)]))
    found = evaluate_masked(data, micro_tokens=50)(own)
    assert found["loss"] == pytest.approx(nats / tokens)
    assert found["bits_per_token"] == pytest.approx(nats / tokens / math.log(2))
    assert found["bits_per_character"] == pytest.approx(nats / characters / math.log(2))
    assert found == evaluate_masked(data, micro_tokens=50)(own)


def test_an_evaluation_may_read_only_some_tokens(small: Corpus) -> None:
    data, seen = masked(small), list[int]()

    class Watched:
        lengths, vocabulary = data.lengths, data.vocabulary

        def batch(self, examples: IntArray, epoch: int) -> Batch:
            seen.extend(examples.tolist())
            return data.batch(examples, epoch)

    watched: Any = Watched()
    evaluate_masked(watched, most_tokens=100)(model().eval())
    assert 1 <= len(seen) < len(data.lengths)
    assert data.lengths[seen].sum() <= 140
    with pytest.raises(InputError, match="`most_tokens` must be at least 1"):
        evaluate_masked(data, most_tokens=0)


def test_sentences_are_told_to_models_with_global_tokens(small: Corpus) -> None:
    data = masked(small, units=Units("sentences", 3), length=60)
    batch = data.batch(np.array([0, 1]), 0)
    parents = batch.layout.sites.tags["parent"]
    assert parents.max() == 2
    assert parents[0] == -1
    assert (np.diff(parents[1 : int(data.lengths[0]) - 1]) >= 0).all()
    loss = masked_loss(model("etc-base", radius=5), batch)
    assert loss.total.isfinite()


def test_what_cannot_be_masked_is_refused(small: Corpus, tmp_path: Path) -> None:
    without = Tokenizer.from_json(tokenizer().to_json(), {"bos": "<s>", "eos": "</s>"})
    with pytest.raises(InputError, match="The tokenizer has no mask token"):
        Vocabulary.of(without)
    data = masked(small)
    bases = Vocabulary.of(tokenizer("dna"))
    with pytest.raises(InputError, match="`masking` must be token for this tokenizer, but is 'word'"):
        type(data)(data.examples, bases, Masking(unit="word"))
    object.__setattr__(data.examples, "documents", np.zeros(0, int))
    with pytest.raises(InputError, match="`documents` must be at least one document"):
        type(data)(data.examples, data.vocabulary, Masking())


@pytest.mark.parametrize("preset", ["longformer-base", "modernbert-base", "bert-base", "etc-base"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_the_last_layer_works_for_the_rows_that_are_asked_for(
    small: Corpus, preset: str, checkpointing: bool
) -> None:
    own, batch = model(preset).eval(), masked(small).batch(np.array([3, 0]), 1)
    own.gradient_checkpointing = checkpointing
    rows = torch.tensor([7, 0, 31, 7])
    torch.testing.assert_close(hidden_rows(own, batch, rows), hidden(own, batch)[rows])
    with torch.no_grad():
        torch.testing.assert_close(hidden_rows(own, batch, rows), hidden(own, batch)[rows])
