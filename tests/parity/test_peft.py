"""Adapters of peft on our models: found, wrapped, trained and merged like those of any torch model."""

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from longspan.families.bert.model import BertConfig
from longspan.families.config import EncoderConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.modernbert.model import ModernBertConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.tasks.registry import build

SIZES: dict[str, Any] = {"vocab_size": 60, "width": 16, "layers": 2, "heads": 2, "feed_forward": 24}
CONFIGS: dict[str, EncoderConfig] = {
    "bert": BertConfig(**SIZES),
    "longformer": LongformerConfig(**SIZES, radius=4),
    "poolingformer": PoolingformerConfig(**SIZES, radius=4, two_level=(0, 1)),
    "modernbert": ModernBertConfig(**SIZES, radius=4),
}
LAYOUT = Layout.packed([19, 5], marked=[[0, 7], [0]])
IDS = torch.randint(0, 60, (24,), generator=torch.Generator().manual_seed(1))


def drawn(name: str) -> TaskModel:
    torch.manual_seed(0)
    model = build(CONFIGS[name], "classify", labels=3).eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.3)
    return model


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("targets", ["all-linear", "named"])
def test_adapters_act_wherever_a_layer_is_read(name: str, targets: str) -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed")
    model = drawn(name)
    with torch.no_grad():
        plain: Tensor = model(IDS, LAYOUT)
    chosen: str | list[str] = "all-linear"
    if targets == "named":
        ends = {
            path.rpartition(".")[2] for path, part in model.named_modules() if isinstance(part, nn.Linear)
        }
        chosen = sorted(ends - {"dense"})
    config = peft.LoraConfig(target_modules=chosen, r=2, init_lora_weights=False)
    adapted = peft.get_peft_model(copy.deepcopy(model), config).eval()
    assert any("lora_A" in path for path, _ in adapted.named_parameters())
    trained = adapted(IDS, LAYOUT)
    trained.sum().backward()
    lost = [
        path
        for path, parameter in adapted.named_parameters()
        if parameter.requires_grad and parameter.grad is None
    ]
    assert not lost
    with torch.no_grad():
        read = adapted(IDS, LAYOUT)
        merged = adapted.merge_and_unload()(IDS, LAYOUT)
    assert not torch.allclose(read, plain, atol=1e-2)
    torch.testing.assert_close(read, trained.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(read, merged, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_torchs_dynamic_quantization_finds_the_layers(name: str) -> None:
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        pytest.skip("torch has no int8 kernels here")
    model = drawn(name)
    with torch.no_grad():
        plain: Tensor = model(IDS, LAYOUT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch means to move it to another package
            quantized = torch.ao.quantization.quantize_dynamic(
                copy.deepcopy(model), {nn.Linear}, dtype=torch.qint8
            )
        found = quantized(IDS, LAYOUT)
    assert not any(type(part) is nn.Linear for part in quantized.backbone.layers[0].feed_forward.modules())
    assert nn.functional.cosine_similarity(found.flatten(), plain.flatten(), dim=0) > 0.98
