"""Tiny models learn a handful of pairs by heart and write them down again."""

from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.conftest import one_thread
from longspan.families.config import EncoderConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.generation.config import GenerationConfig
from longspan.generation.generate import generate
from longspan.layout import Layout
from longspan.tasks.registry import build

__all__ = ["one_thread"]
START, END, VOCAB = 0, 2, 41
SMALL: dict[str, Any] = {
    "vocab_size": VOCAB,
    "width": 32,
    "layers": 2,
    "heads": 4,
    "feed_forward": 48,
    "positions": 64,
    "position_offset": 0,
    "token_types": 0,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
ENCODERS: dict[str, EncoderConfig] = {
    "led": LongformerConfig(**SMALL, radius=4),
    "poolingformer": PoolingformerConfig(**SMALL, radius=4, wide_radius=16, two_level=(1,)),
}
LENGTHS, WRITTEN = (37, 20, 29, 11), (7, 4, 9, 5)


def pairs() -> tuple[Tensor, Tensor]:
    """Documents, and texts that have nothing to do with them, each with the end behind it."""
    draw = torch.Generator().manual_seed(3)
    ids = torch.randint(3, VOCAB, (sum(LENGTHS),), generator=draw)
    texts = torch.randint(3, VOCAB, (sum(WRITTEN),), generator=draw)
    texts[torch.tensor(WRITTEN).cumsum(0) - 1] = END
    return ids, texts


def learnt(encoder: EncoderConfig, *, smoothing: float) -> tuple[Seq2SeqLM, float]:
    torch.manual_seed(0)
    config = Seq2SeqConfig(encoder=encoder, layers=2, heads=4, feed_forward=48, positions=32, start_id=START)
    model = build(config, "summarize").train()
    ids, texts = pairs()
    adam, loss = torch.optim.Adam(model.parameters(), 5e-3), torch.zeros(())
    for _ in range(60):
        adam.zero_grad()
        loss = model.loss(ids, documents(), texts, Layout.packed(WRITTEN), label_smoothing=smoothing)
        loss.backward()
        adam.step()
    return model.eval(), loss.item()


def documents() -> Layout:
    """The first token of each is global."""
    return Layout.packed(LENGTHS, marked=[[0]] * len(LENGTHS))


@pytest.mark.parametrize("kind", ENCODERS)
def test_pairs_that_were_learnt_are_written_again(kind: str) -> None:
    model, loss = learnt(ENCODERS[kind], smoothing=0.0)
    assert loss < 0.1
    ids, texts = pairs()
    wanted = [tuple(text.tolist()) for text in texts.split(list(WRITTEN))]
    for options in (
        GenerationConfig(max_new_tokens=20),
        GenerationConfig(max_new_tokens=20, num_beams=4),
        GenerationConfig(max_new_tokens=20, do_sample=True, top_k=1),
    ):
        written = generate(model, ids, documents(), options)
        assert [best.tokens for best, *_ in written] == wanted


def test_with_smoothing_they_are_learnt_too_but_never_surely() -> None:
    model, loss = learnt(ENCODERS["led"], smoothing=0.1)
    assert 0.3 < loss < 1.2  # no better than the entropy of what is asked for
    ids, texts = pairs()
    written = generate(model, ids, documents(), GenerationConfig(max_new_tokens=20, num_beams=2))
    assert [best.tokens for best, *_ in written] == [
        tuple(one.tolist()) for one in texts.split(list(WRITTEN))
    ]


def test_the_global_token_tells_the_decoder_of_the_whole_document() -> None:
    """Without it the first row, which alone is looked at here, knows only its window."""
    torch.manual_seed(0)
    model = build(
        Seq2SeqConfig(encoder=ENCODERS["led"], layers=2, heads=4, feed_forward=48), "summarize"
    ).eval()
    ids = torch.randint(3, VOCAB, (40,))
    other = ids.clone()
    other[-1] = 3 if ids[-1] != 3 else 4
    for marked, told in ((None, False), ([[0]], True)):
        layout = Layout.packed([40], marked=marked)
        first, second = (model.backbone(one, layout)[0] for one in (ids, other))
        assert torch.equal(first, second) != told


def test_the_first_token_is_global_unless_somebody_says_otherwise() -> None:
    torch.manual_seed(0)
    model = build(Seq2SeqConfig(encoder=ENCODERS["led"], layers=2, heads=4, feed_forward=48), "summarize")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3)
    (ids, texts), places = pairs(), Layout.packed(WRITTEN)
    bare = Layout.packed(LENGTHS)
    none: Layout = Layout.packed(LENGTHS, marked=[()] * 4)
    first, second = (Layout.packed(LENGTHS, marked=marked) for marked in ([[0]] * 4, [[1], [0], [0], [0]]))
    wanted = model.loss(ids, first, texts, places)
    assert torch.equal(model.loss(ids, bare, texts, places), wanted)
    assert not torch.equal(model.loss(ids, none, texts, places), wanted)
    assert not torch.equal(model.loss(ids, second, texts, places), wanted)
    options = GenerationConfig(num_beams=2, max_new_tokens=9)
    assert generate(model, ids, bare, options) == generate(model, ids, first, options)
    assert generate(model, ids, none, options) != generate(model, ids, first, options)


def test_nothing_is_dropped_while_writing_and_learning_goes_on_as_before() -> None:
    torch.manual_seed(0)
    encoder = LongformerConfig(**SMALL | {"dropout": 0.5, "attention_dropout": 0.5}, radius=4)
    model = build(Seq2SeqConfig(encoder=encoder, layers=2, heads=4, feed_forward=48), "summarize").train()
    ids, _ = pairs()
    texts = [generate(model, ids, documents(), GenerationConfig(max_new_tokens=9)) for _ in range(2)]
    assert texts[0] == texts[1]
    assert model.training
    assert texts[0] == generate(model.eval(), ids, documents(), GenerationConfig(max_new_tokens=9))
