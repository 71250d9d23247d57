"""ModernBERT computes what transformers computes, at any length and with every option, and is saved alike."""

from pathlib import Path
from typing import Any

import pytest
import torch

from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from parity.peers import (
    HEADS,
    compare,
    hidden,
    losses,
    output,
    padded,
    pair,
    same_loss,
    words,
)

RADIUS = 4
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24}
BIASES = ("norm_bias", "attention_bias", "mlp_bias", "decoder_bias", "classifier_bias")


def agree(folder: Path, head: str = "Model", n: int = 41, **changes: Any) -> TaskModel:
    """Outputs and gradients of both, on one document."""
    theirs, ours = pair(folder, "ModernBert", head, **changes)
    (ids,) = words(n)
    expected = output(theirs(ids[None]))
    given = hidden(ours)(ids, Layout.packed([n]))
    compare(theirs, ours, given[0] if expected.dim() == 1 else given, expected)
    return ours


@pytest.mark.parametrize("n", [1, 2, RADIUS, RADIUS + 1, 2 * RADIUS + 1, 61, 96])
def test_the_backbone_agrees_at_any_length(tmp_path: Path, n: int) -> None:
    agree(tmp_path, n=n)


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_any_number_of_layers_agrees(tmp_path: Path, layers: int) -> None:
    assert agree(tmp_path, num_hidden_layers=layers).config.layers == layers


@pytest.mark.parametrize("head", HEADS[1:-1])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_every_head_agrees(tmp_path: Path, head: str, pooling: str) -> None:
    agree(tmp_path, head, classifier_pooling=pooling)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_choice_between_documents_agrees(tmp_path: Path, pooling: str) -> None:
    theirs, ours = pair(tmp_path, "ModernBert", "ForMultipleChoice", classifier_pooling=pooling)
    ids = words(31, 17, 8)
    batch = padded(ids, 0)[None]  # (choices, L) -> (1, choices, L)
    expected = theirs(batch, attention_mask=(batch != 0).long()).logits[0]
    compare(theirs, ours, ours(torch.cat(ids), Layout.packed([31, 17, 8]))[:, 0], expected)


@pytest.mark.parametrize("head", ["ForMaskedLM", "ForSequenceClassification"])
def test_documents_packed_end_to_end_agree_with_a_padded_batch(tmp_path: Path, head: str) -> None:
    theirs, ours = pair(tmp_path, "ModernBert", head, classifier_pooling="mean")
    lengths, ids = (19, 50, 7), words(19, 50, 7)
    real = padded([torch.ones(n, dtype=torch.bool) for n in lengths], 0)
    expected = theirs(padded(ids, 0), attention_mask=real.long()).logits
    expected = expected[real] if head == "ForMaskedLM" else expected
    compare(theirs, ours, ours(torch.cat(ids), Layout.packed(lengths)), expected)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("head", ["ForMaskedLM", "ForTokenClassification"])
def test_all_biases_may_be_there_or_not(tmp_path: Path, head: str, on: bool) -> None:
    ours = agree(tmp_path, head, **dict.fromkeys(BIASES, on))
    biases = {name for name, _ in ours.named_parameters() if name.endswith(".bias")}
    assert len(biases) > 10 if on else biases <= {"head.out.bias"}


@pytest.mark.parametrize("name", BIASES)
def test_each_bias_is_a_field_of_its_own(tmp_path: Path, name: str) -> None:
    agree(tmp_path, "ForMaskedLM", **{one: one == name for one in BIASES})


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_activation": "silu"},
        {"hidden_activation": "gelu_pytorch_tanh", "classifier_activation": "relu"},
        {"norm_eps": 1e-2},
        {"local_attention": 7},
        {"layer_types": ["sliding_attention", "full_attention", "full_attention"]},
        {"layer_types": ["sliding_attention"] * 3},
        {"layer_types": ["full_attention"] * 3},
        {"rope_parameters": {"full_attention": {"rope_theta": 300.0}, "sliding_attention": {}}},
        {
            "rope_parameters": {
                "full_attention": {**YARN, "attention_factor": 1.25, "beta_fast": 8.0},
                "sliding_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 100.0},
            }
        },
        {"rope_parameters": {"full_attention": {**YARN, "mscale": 0.7, "mscale_all_dim": 0.4}}},
        {"rope_parameters": {"full_attention": {**YARN, "factor": None}}},
        {"rope_parameters": {"full_attention": {"rope_type": "dynamic", "factor": 3.0}}},
    ],
    ids=str,
)
def test_options_agree(tmp_path: Path, changes: dict[str, Any]) -> None:
    agree(tmp_path, "ForMaskedLM", num_hidden_layers=3, n=61, **changes)


@pytest.mark.parametrize("n", [23, 24, 61])
def test_angles_that_depend_on_the_length_agree(tmp_path: Path, n: int) -> None:
    scaled = {"rope_type": "dynamic", "factor": 3.0}
    both = {"full_attention": dict(scaled), "sliding_attention": dict(scaled)}
    ours = agree(tmp_path, n=n, max_position_embeddings=24, rope_parameters=both)
    assert ours.config.angles is not None
    assert ours.config.angles.original_max_position_embeddings == 24


def test_a_decoder_of_its_own_agrees_and_stays_so(tmp_path: Path) -> None:
    ours = agree(tmp_path, "ForMaskedLM", tie_word_embeddings=False)
    assert ours.get_parameter("head.decoder.weight") is not ours.backbone.word_embeddings.weight


@pytest.mark.parametrize("head", HEADS[1:])
def test_losses_agree(tmp_path: Path, head: str) -> None:
    theirs, ours = pair(tmp_path, "ModernBert", head, num_labels=2 if "Question" in head else 3)
    same_loss(theirs, ours, *losses(theirs, ours))
