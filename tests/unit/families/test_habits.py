"""What users of transformers expect of a model: its size and place, and room for other words."""

from typing import Any

import pytest
import torch

from longspan.checkpoints.matching import put
from longspan.errors import InputError
from longspan.families.bert.model import BertConfig
from longspan.families.modernbert.model import ModernBertConfig
from longspan.families.stitched.model import StitchedConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.tasks.registry import build

SIZES: dict[str, Any] = {"vocab_size": 60, "width": 16, "layers": 2, "heads": 2, "feed_forward": 24}


def drawn(task: str = "fill", **changes: Any) -> TaskModel:
    torch.manual_seed(0)
    return build(BertConfig(**SIZES, **changes), task).eval()


def test_weights_are_counted_once() -> None:
    model = drawn()
    words, rest = 60 * 16, sum(p.numel() for p in model.parameters()) - 60 * 16
    assert model.num_parameters() == words + rest
    tables = words + (512 + 2) * 16
    assert model.num_parameters(exclude_embeddings=True) == model.num_parameters() - tables
    model.backbone.requires_grad_(False)
    assert model.num_parameters(only_trainable=True) == sum(
        p.numel() for p in model.parameters() if p.requires_grad
    )
    assert (model.device.type, model.dtype, model.backbone.dtype) == ("cpu", torch.float32, torch.float32)
    assert model.config.to_dict()["width"] == 16


@pytest.mark.parametrize("config", [BertConfig(**SIZES), ModernBertConfig(**SIZES)])
@pytest.mark.parametrize("rows", [67, 60, 41])
def test_other_words_leave_those_that_stay_as_they_are(config: Any, rows: int) -> None:
    torch.manual_seed(0)
    model, layout = build(config, "fill").eval(), Layout.packed([9])
    kept = min(rows, 60)
    ids = torch.randint(0, kept, (9,))
    with torch.no_grad():
        before, mean = model(ids, layout), model.get_input_embeddings().weight.mean(0)
        table = model.resize_token_embeddings(rows)
        after = model(ids, layout)
    assert table is model.get_input_embeddings()
    assert table.weight.shape == (rows, 16)
    assert model.config.vocab_size == rows
    assert model.get_parameter("head.decoder.weight") is table.weight
    assert after.shape == (9, rows)
    torch.testing.assert_close(after[:, :kept], before[:, :kept])
    torch.testing.assert_close(table.weight[60:], mean.expand(max(rows - 60, 0), -1))


def test_a_decoder_of_its_own_grows_by_itself() -> None:
    model = drawn()
    own = torch.nn.Parameter(torch.randn(60, 16))
    put(model, "head.decoder.weight", own)
    model.resize_token_embeddings(61, pad_to_multiple_of=8)
    decoder = model.get_parameter("head.decoder.weight")
    assert decoder.shape == model.get_input_embeddings().weight.shape == (64, 16)
    assert decoder is not model.get_input_embeddings().weight
    assert torch.equal(decoder[:60], own)


def test_what_cannot_be_resized_is_told() -> None:
    with pytest.raises(InputError, match="above the padding token's number, 7"):
        drawn(pad_id=7).resize_token_embeddings(7)
    with pytest.raises(InputError, match="`new_num_tokens` must be at least 1"):
        drawn().resize_token_embeddings(0)
    stitched = build(StitchedConfig(**SIZES, sif_weights=True), "encode")
    with pytest.raises(InputError, match="SIF weights"):
        stitched.resize_token_embeddings(70)
