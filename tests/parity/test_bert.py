"""BERT's relatives, MPNet among them, compute what transformers computes; a wide window computes the same."""

import json
from pathlib import Path

import pytest
import torch

from longspan.checkpoints.load import load_model
from longspan.layout import Layout
from longspan.nn.heads import PoolingHead
from parity.peers import HEADS, close, compare, hidden, output, padded, pair, peer, words

FAMILIES = ("Bert", "Roberta", "XLMRoberta", "Camembert", "Electra", "MPNet")


@pytest.mark.parametrize("head", HEADS[:-1])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_head_agrees(tmp_path: Path, family: str, head: str) -> None:
    theirs, ours = pair(tmp_path, family, head)
    (ids,) = words(41)
    expected = output(theirs(ids[None]))
    given = hidden(ours)(ids, Layout.packed([41]))
    compare(theirs, ours, given[0] if expected.dim() == 1 else given, expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_documents_packed_end_to_end_agree_with_a_padded_batch(tmp_path: Path, family: str) -> None:
    theirs, ours = pair(tmp_path, family, "ForMaskedLM")
    lengths = (19, 50, 7)
    ids = words(*lengths)
    batch = padded(ids, theirs.config.pad_token_id)
    real = padded([torch.ones(n, dtype=torch.bool) for n in lengths], 0)
    expected = theirs(batch, attention_mask=real.long()).logits[real]
    compare(theirs, ours, ours(torch.cat(ids), Layout.packed(lengths)), expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_choice_between_documents_agrees(tmp_path: Path, family: str) -> None:
    theirs, ours = pair(tmp_path, family, "ForMultipleChoice")
    ids = words(31, 17, 8)
    batch = padded(ids, theirs.config.pad_token_id)[None]  # (choices, L) -> (1, choices, L)
    expected = theirs(batch, attention_mask=(batch != theirs.config.pad_token_id).long()).logits[0]
    compare(theirs, ours, ours(torch.cat(ids), Layout.packed([31, 17, 8]))[:, 0], expected)


def test_the_pooler_agrees(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "Bert", "Model")
    (ids,) = words(41)
    layout = Layout.packed([41])
    assert isinstance(ours.head, PoolingHead)
    assert ours.head.dense is not None
    pooled = torch.tanh(ours.head.dense(ours.backbone(ids, layout)[:1]))
    close(pooled.detach(), theirs(ids[None]).pooler_output.detach())


@pytest.mark.parametrize("marked", [[], list(range(40))], ids=["no globals", "all global"])
def test_a_window_as_wide_as_the_document_is_roberta(tmp_path: Path, marked: list[int]) -> None:
    """The file of a RoBERTa read as a Longformer: its global projections are copied from the local ones."""
    theirs = peer("Roberta", "ForMaskedLM")
    theirs.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "longformer", "attention_window": 78}
    (tmp_path / "config.json").write_text(json.dumps(config))
    loaded = load_model(tmp_path)
    assert len(loaded.report.missing) == 12  # weight and bias of three projections in two layers
    assert "copied" in loaded.notes[0]
    (ids,) = words(40)
    expected = output(theirs(ids[None]))
    close(loaded.model(ids, Layout.packed([40], marked=[marked])).detach(), expected.detach())
