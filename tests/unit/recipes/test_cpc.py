"""Contrastive prediction: hidden sentences, and the loss by its literal formula."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longspan.corpus.store import Corpus
from longspan.errors import InputError
from longspan.families.config import Units
from longspan.layout import Layout
from longspan.recipes.cpc import LEAST, SHARE, ContrastiveExamples, contrastive_loss, nce
from longspan.recipes.mlm import masked_loss
from unit.corpus.small import corpus, tokenizer
from unit.recipes.small import masked, model

UNITS = Units("sentences", 50)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus(tmp_path_factory.mktemp("corpus"), 6, length=80)


def examples(small: Corpus, share: float = 0.3) -> ContrastiveExamples:
    return ContrastiveExamples(masked(small, length=60, units=UNITS), share)


def test_the_loss_is_that_of_its_formula() -> None:
    draw = torch.Generator().manual_seed(0)
    found, right = (torch.randn(5, 7, generator=draw, dtype=torch.float64) for _ in range(2))
    total = 0.0
    for i in range(5):
        scores = [math.exp(float(found[i] @ right[j]) / math.sqrt(7)) for j in range(5)]
        total -= math.log(scores[i] / sum(scores))
    assert float(nce(found, right)) == pytest.approx(total / 5)


def test_hidden_sentences_are_masked_whole_and_not_asked_for(small: Corpus) -> None:
    data = examples(small)
    batch = data.batch(np.arange(4), 2)
    assert isinstance(batch.read.labels, Tensor)
    parents, document = batch.read.layout.sites.tags["parent"], batch.read.layout.sites.document
    assert len(batch.units) >= 4
    starts = np.cumsum([0, *batch.sentences.layout.lengths])
    for number, (place, unit) in enumerate(zip(batch.documents, batch.units, strict=True)):
        rows = np.flatnonzero((parents == unit) & (document == place))
        assert len(rows) >= LEAST
        assert set(batch.read.ids[rows].tolist()) == {tokenizer().mask}
        assert (batch.read.labels[rows] == -100).all()
        own = data.plain.examples.ids(int(place))
        alone = batch.sentences.ids[starts[number] : starts[number + 1]].tolist()
        sentence = own[data.plain.parents(int(place)) == unit]
        assert alone == [tokenizer().bos, *sentence, tokenizer().eos]
    for example in range(4):  # something of each example is left
        assert set(batch.units[batch.documents == example]) < set(parents[document == example])


def test_hidden_sentences_depend_on_their_key_alone(small: Corpus) -> None:
    data = examples(small)
    first, again, later = (data.batch(np.arange(6), epoch) for epoch in (1, 1, 2))
    assert torch.equal(first.read.ids, again.read.ids)
    assert torch.equal(first.sentences.ids, again.sentences.ids)
    assert not torch.equal(first.read.ids, later.read.ids)


def test_words_and_sentences_share_the_loss(small: Corpus) -> None:
    own = model("etc-base", radius=5, dropout=0.0, attention_dropout=0.0).double()
    batch = examples(small).batch(np.arange(3), 0)
    loss = contrastive_loss(own, batch)
    words = masked_loss(own, batch.read)
    backbone: Any = own.backbone
    read = backbone.streams(batch.read.ids, batch.read.layout)
    states = []
    for place, unit in zip(batch.documents, batch.units, strict=True):
        counts = np.bincount(read.structure.globals.sites.document)
        states.append(read.globals[counts[:place].sum() + unit])
    alone, start = [], 0
    for size in batch.sentences.layout.lengths.tolist():
        ids = batch.sentences.ids[start : start + size]
        parent = np.array([-1, *[0] * (size - 2), -1])
        alone.append(backbone.streams(ids, Layout.packed([size], tags={"parent": parent})).globals[0])
        start += size
    told = nce(torch.stack(states), torch.stack(alone))
    wanted = (1 - SHARE) * words.total + SHARE * words.weight * told
    torch.testing.assert_close(loss.total, wanted)
    assert loss.weight == words.weight
    loss.total.backward()
    assert own.backbone.word_embeddings.weight.grad is not None


def test_without_sentences_to_tell_apart_only_words_count(small: Corpus) -> None:
    own = model("etc-base", radius=5, dropout=0.0, attention_dropout=0.0)
    batch = examples(small).batch(np.arange(1), 0)
    nothing = batch._replace(documents=batch.documents[:1], units=batch.units[:1])
    loss = contrastive_loss(own, nothing)
    torch.testing.assert_close(loss.total, (1 - SHARE) * masked_loss(own, batch.read).total)


def test_other_models_and_units_are_refused(small: Corpus) -> None:
    for units, value in (
        (None, "without any"),
        (Units("blocks", 9), "blocks"),
        (Units("sentences", 0), "sentences"),
    ):
        with pytest.raises(InputError, match=f"global tokens stand for sentences, but is '{value}'"):
            ContrastiveExamples(masked(small, units=units))
    with pytest.raises(InputError, match="`model` must be one with a stream of global tokens"):
        contrastive_loss(model(), examples(small).batch(np.arange(2), 0))
