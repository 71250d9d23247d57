"""ONNX files of our models compute what the models do, for texts of any length up to their own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from longspan import export
from longspan.errors import InputError
from longspan.families.bert.model import BertConfig
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.modernbert.model import ModernBertConfig
from longspan.families.mpnet.model import MPNetConfig
from longspan.layout import Layout
from longspan.nn.quantized import quantize
from longspan.tasks.registry import build

SIZES: dict[str, Any] = {"vocab_size": 60, "width": 16, "layers": 2, "heads": 2, "feed_forward": 24}
CONFIGS: dict[str, EncoderConfig] = {
    "bert": BertConfig(**SIZES),
    "window": BertConfig(**SIZES, radius=3),
    "mpnet": MPNetConfig(**SIZES),
    "longformer": LongformerConfig(**SIZES, radius=4),
    "modernbert": ModernBertConfig(**SIZES, radius=4),
}
LENGTH = 23


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("task", ["encode", "classify", "tag"])
def test_a_runtime_gives_the_models_numbers(tmp_path: Path, name: str, task: str) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    torch.manual_seed(0)
    model = build(CONFIGS[name], task).eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.3)
    export.onnx(model, tmp_path / "model.onnx", length=LENGTH)
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    for n in (LENGTH, 11, 1):
        ids, mask = np.zeros((1, LENGTH), np.int64), np.zeros((1, LENGTH), np.int64)
        ids[0, :n], mask[0, :n] = np.arange(n) % 50 + 3, 1
        (found,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
        with torch.no_grad():
            expected = model(torch.from_numpy(ids[0, :n]), Layout.packed([n])).numpy()
        by_token = task == "tag"
        np.testing.assert_allclose(found[:n] if by_token else found, expected, rtol=1e-4, atol=1e-5)
        if by_token:
            assert not found[n:].any()


def test_what_cannot_be_exported_is_told(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    file = tmp_path / "model.onnx"
    model = build(CONFIGS["bert"], "encode").eval()
    with pytest.raises(InputError, match="`length` must be at most 512"):
        export.onnx(model, file, length=513)
    blocks = build(BigBirdConfig(**SIZES, block=4, random_blocks=1, positions=200), "encode")
    with pytest.raises(InputError, match="a text's end changes nothing before it"):
        export.onnx(blocks, file, length=100)
    with pytest.raises(InputError, match="of floating-point weights"):
        export.onnx(quantize(model), file, length=8)  # type: ignore[arg-type]
    assert not file.exists()
