"""Probabilities of chosen rows: those of transformers' eager attention, or a refusal that says why."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from longspan.errors import InputError
from longspan.families.config import EncoderConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.tasks.registry import build
from parity.peers import close, padded, pair, words

LENGTHS = (13, 1, 29)
SINGLE = ("Bert", "Roberta", "MPNet", "NomicBert", "Gte", "EuroBert", "Gemma3Text", "ModernBert")


def batch() -> dict[str, Tensor]:
    ones = padded([torch.ones(n, dtype=torch.long) for n in LENGTHS], 0)
    return {"input_ids": padded(words(*LENGTHS), 1), "attention_mask": ones}


@pytest.mark.parametrize("family", SINGLE)
def test_rows_are_those_of_transformers(tmp_path: Path, family: str) -> None:
    theirs, ours = pair(tmp_path, family, "Model")
    theirs.set_attn_implementation("eager")
    given = batch()
    wanted = theirs(**given, output_attentions=True).attentions
    found = ours(**given, output_attentions=[0, 12, -1])
    assert len(found.attentions) == len(wanted) == 2
    for mine, whole in zip(found.attentions, wanted, strict=True):
        assert mine.shape == (3, 3, 3, 29)
        there = (given["attention_mask"] != 0)[:, [0, 12, 28]]
        close(mine.transpose(1, 2)[there], whole[:, :, [0, 12, 28]].transpose(1, 2)[there], family)
        assert not mine.transpose(1, 2)[~there].any()
        torch.testing.assert_close(mine.sum(-1).transpose(1, 2)[there], torch.ones(int(there.sum()), 3))
    plain = ours(**given)
    torch.testing.assert_close(found.last_hidden_state, plain.last_hidden_state, rtol=0, atol=0)
    assert "attentions" not in plain


def test_all_rows_of_a_short_batch_and_their_gradients(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "Bert", "ForSequenceClassification")
    theirs.set_attn_implementation("eager")
    given = batch()
    wanted = theirs(**given, output_attentions=True).attentions
    found = ours(**given, output_attentions=True, output_hidden_states=True)
    assert len(found.hidden_states) == 3
    mask = (given["attention_mask"] != 0)[:, None, :, None]
    for mine, whole in zip(found.attentions, wanted, strict=True):
        close(mine * mask, whole * mask, "all")
    found.attentions[1][:, :, 0, 0].sum().backward()
    wanted[1][:, :, 0, 0].sum().backward()
    mine = ours.backbone.get_parameter("embeddings.words.weight").grad
    assert mine is not None
    close(mine, theirs.bert.embeddings.word_embeddings.weight.grad, "gradient")


def test_a_local_row_of_longformer_is_shown_and_a_global_one_is_refused(tmp_path: Path) -> None:
    _, ours = pair(tmp_path, "Longformer", "Model")
    ids = words(40)[0][None]
    marks = torch.zeros_like(ids)
    marks[0, 0] = 1
    (first, _) = ours(input_ids=ids, global_attention_mask=marks, output_attentions=[20]).attentions
    assert first[0, :, 0].nonzero()[:, 1].unique().tolist() == [0, *range(16, 25)]
    with pytest.raises(InputError, match="Global tokens have projections of their own"):
        ours(input_ids=ids, global_attention_mask=marks, output_attentions=[0])


def test_what_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    _, ours = pair(tmp_path, "Bert", "Model")
    ids = words(40)[0][None]
    for wrong in ([40], [-41], "0", 3):
        with pytest.raises(InputError, match="output_attentions"):
            ours(input_ids=ids, output_attentions=wrong)
    with pytest.raises(InputError, match="True for up to 1024 columns"):
        ours(input_ids=torch.ones(1, 1025, dtype=torch.long), output_attentions=True)
    config: EncoderConfig = PoolingformerConfig(
        vocab_size=83, width=24, layers=2, heads=3, feed_forward=40, positions=96
    )
    model = build(config, "encode").eval()
    with pytest.raises(InputError, match="whose keys are not its tokens"):
        model(input_ids=ids, output_attentions=[0])
    with pytest.raises(AttributeError, match="output_attentions"):
        _ = ours(input_ids=ids).attentions
