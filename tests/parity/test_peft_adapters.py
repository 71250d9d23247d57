"""Adapters trained here work in peft beside transformers' models, and peft's are merged into ours."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor, nn

from longspan.checkpoints.adapters import save_adapter
from longspan.checkpoints.load import load_model
from longspan.checkpoints.lora import add_lora
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.lora import lora_layers
from longspan.tasks import classify
from parity import writers
from parity.peers import HEADS, OF_FAMILY, READ_ONLY, close, hidden, output, padded, pair, peer, words

peft = pytest.importorskip("peft", reason="peft is not installed")

CLASSES = [
    *(("ModernBert", head) for head in HEADS),
    ("Longformer", "Model"),
    ("Longformer", "ForMaskedLM"),
    ("Longformer", "ForSequenceClassification"),
    ("Longformer", "ForTokenClassification"),
    ("BigBird", "ForMaskedLM"),
    ("Bert", "ForMultipleChoice"),
    ("Roberta", "ForSequenceClassification"),
    ("Electra", "ForSequenceClassification"),
    ("MPNet", "ForSequenceClassification"),
    ("DistilBert", "ForSequenceClassification"),
    ("NomicBert", "Model"),
    ("Gte", "ForTokenClassification"),
    ("Gemma3Text", "Model"),
    ("EuroBert", "ForSequenceClassification"),
]
N = 21


def config_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


def disturb(parameters: Any) -> None:
    """Weights as if they had been trained."""
    draw = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in parameters:
            parameter += 0.2 * torch.randn(parameter.shape, generator=draw)


def trained(ours: TaskModel) -> list[nn.Parameter]:
    return [parameter for parameter in ours.parameters() if parameter.requires_grad]


def same_outputs(theirs: Any, ours: TaskModel, n: int = N) -> Tensor:
    (ids,) = words(n)
    with torch.no_grad():
        choices = {"ids": ids[None]} if ours.architecture != "ForMultipleChoice" else {"ids": ids[None, None]}
        expected = output(theirs(choices["ids"]))
        marked = [[0]] if ours.architecture == "ForMultipleChoice" else None
        found = hidden(ours)(ids, Layout.packed([n], marked=marked))
    found = found[0] if expected.dim() == 1 else found
    close(found, expected)
    return expected


@pytest.mark.parametrize(("family", "head"), CLASSES)
def test_an_adapter_trained_here_works_in_peft(tmp_path: Path, family: str, head: str) -> None:
    theirs, ours = pair(tmp_path / "base", family, head)
    before = same_outputs(theirs, ours)
    config = config_of(tmp_path / "base")
    add_lora(ours, r=3, lora_alpha=5, use_rslora=head == "Model", config=config)
    same_outputs(theirs, ours)  # at first nothing changes
    disturb(trained(ours))
    save_adapter(ours, tmp_path / "adapter", base="somewhere", config=config)
    adapted = peft.PeftModel.from_pretrained(copy.deepcopy(theirs), str(tmp_path / "adapter")).eval()
    after = same_outputs(adapted, ours)
    assert not torch.allclose(before, after, atol=1e-2)
    again = load_model(tmp_path / "base", adapter=tmp_path / "adapter")
    assert not again.notes
    same_outputs(adapted, again.model)


@pytest.mark.parametrize(("family", "head"), CLASSES)
def test_an_adapter_of_peft_is_merged(tmp_path: Path, family: str, head: str) -> None:
    theirs = peer(family, head)
    theirs.save_pretrained(tmp_path / "base")
    targets = ["q_lin", "lin1"] if family == "DistilBert" else "all-linear"
    config = peft.LoraConfig(target_modules=targets, r=3, lora_alpha=4, init_lora_weights=False)
    if head == "ForSequenceClassification":
        config.task_type = "SEQ_CLS"
    adapted = peft.get_peft_model(theirs, config).eval()
    disturb(one for name, one in adapted.named_parameters() if "modules_to_save" in name)
    adapted.save_pretrained(tmp_path / "adapter")
    loaded = load_model(tmp_path / "base", adapter=str(tmp_path / "adapter"))
    same_outputs(adapted, loaded.model)
    assert not lora_layers(loaded.model)


@pytest.mark.parametrize("variant", ["led", "bart", "pegasus"])
def test_a_model_that_writes_has_adapters_in_encoder_and_decoder(tmp_path: Path, variant: str) -> None:
    theirs, ours = writers.pair(tmp_path / "base", variant)
    config = config_of(tmp_path / "base")
    changed = add_lora(ours, r=2, config=config)
    for side in ("encoder.layers.0.attention.qkv", "decoder.layers.2.cross.kv"):
        assert f"backbone.{side}" in changed
    disturb(trained(ours))
    save_adapter(ours, tmp_path / "adapter", config=config)
    ids, texts = writers.documents(17, 9, end=2), writers.documents(5, 3, end=2, seed=3)
    read = torch.cat(ids), writers.layout_of(ids, marked=variant == "led")
    with torch.no_grad():
        before = writers.call(theirs, ids, decoder_input_ids=padded(texts, 1)).logits[0]
        adapted = peft.PeftModel.from_pretrained(theirs, str(tmp_path / "adapter")).eval()
        expected = writers.call(adapted.base_model.model, ids, decoder_input_ids=padded(texts, 1)).logits[0]
        found = ours(*read, torch.cat(texts), writers.layout_of(texts))
        merged = load_model(tmp_path / "base", adapter=tmp_path / "adapter").model
        again = merged(*read, torch.cat(texts), writers.layout_of(texts))
    assert not torch.allclose(before, expected, atol=1e-2)
    close(found[:5], expected)
    close(again[:5], expected)


@pytest.mark.parametrize("family", ["Longformer", "ModernBert"])
def test_training_moves_the_same_matrices_as_in_peft(tmp_path: Path, family: str) -> None:
    theirs, ours = pair(tmp_path / "base", family, "ForSequenceClassification", num_labels=3)
    config = config_of(tmp_path / "base")
    targets = ["query", "value"] if family == "Longformer" else ["Wqkv"]
    add_lora(ours, r=4, lora_alpha=8, target_modules=targets, config=config)
    save_adapter(ours, tmp_path / "begin", config=config)
    adapted = peft.PeftModel.from_pretrained(theirs, str(tmp_path / "begin"), is_trainable=True).eval()
    counted = sum(one.numel() for one in adapted.parameters() if one.requires_grad)
    assert counted == sum(one.numel() for one in trained(ours))
    (ids,), label = words(N), torch.tensor([2])
    both = torch.optim.SGD(trained(ours), lr=0.5), torch.optim.SGD(adapted.parameters(), lr=0.5)
    for _ in range(4):
        mine = classify.loss(ours(ids, Layout.packed([N])), label)
        other = adapted(ids[None], labels=label).loss
        close(mine.detach(), other.detach(), "loss")
        for loss, optimizer in zip((mine, other), both, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    save_adapter(ours, tmp_path / "ours", config=config)
    adapted.save_pretrained(tmp_path / "theirs")
    found, wanted, begun = (
        load_file(tmp_path / name / "adapter_model.safetensors") for name in ("ours", "theirs", "begin")
    )
    assert found.keys() == wanted.keys()
    moved = [name for name, tensor in found.items() if not torch.equal(tensor, begun[name])]
    assert len(moved) > len(found) / 2  # local queries of the last layer are read by nobody
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, wanted[name], rtol=1e-3, atol=1e-5, msg=name)


def test_ranks_and_scales_of_single_modules_are_theirs(tmp_path: Path) -> None:
    theirs = peer("Bert", "Model")
    theirs.save_pretrained(tmp_path / "base")
    config = peft.LoraConfig(
        target_modules=["query", "word_embeddings", "output.dense"],
        r=2,
        rank_pattern={"layer.1.attention.self.query": 5, "query": 3},
        alpha_pattern={"output.dense": 7},
        use_rslora=True,
        init_lora_weights=False,
    )
    adapted = peft.get_peft_model(theirs, config).eval()
    adapted.save_pretrained(tmp_path / "adapter")
    same_outputs(adapted, load_model(tmp_path / "base", adapter=tmp_path / "adapter").model)


def test_an_adapter_of_one_class_serves_another(tmp_path: Path) -> None:
    """A classifier's backbone gives vectors; its head is told and left out."""
    theirs = peer("Roberta", "ForSequenceClassification")
    theirs.save_pretrained(tmp_path / "base")
    config = peft.LoraConfig(
        target_modules=["query", "dense"], r=2, task_type="SEQ_CLS", init_lora_weights=False
    )
    adapted = peft.get_peft_model(theirs, config).eval()
    adapted.save_pretrained(tmp_path / "adapter")
    loaded = load_model(tmp_path / "base", "encode", adapter=tmp_path / "adapter")
    assert "4 tensors of the adapter belong to modules that the task does not use." in loaded.notes
    (ids,) = words(N)
    with torch.no_grad():
        expected = adapted.base_model.model.roberta(ids[None]).last_hidden_state[0]
        close(loaded.model.backbone(ids, Layout.packed([N])), expected)


def test_a_head_in_the_adapter_need_not_be_in_the_file_of_the_model(tmp_path: Path) -> None:
    peer("Longformer", "ForMaskedLM").save_pretrained(tmp_path / "base")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=4)
    config = peft.LoraConfig(target_modules=["value"], r=2, task_type="SEQ_CLS", init_lora_weights=False)
    adapted = peft.get_peft_model(theirs, config).eval()
    adapted.save_pretrained(tmp_path / "adapter")
    loaded = load_model(tmp_path / "base", "classify", labels=4, adapter=tmp_path / "adapter")
    assert not loaded.notes
    same_outputs(adapted, loaded.model)


def test_every_family_is_in_the_sweep_or_like_one_that_is() -> None:
    alike = {"XLMRoberta": "Roberta", "Camembert": "Roberta", "JinaEmbeddingsV3": "Gte"}
    swept = {family for family, _ in CLASSES}
    assert {*OF_FAMILY, *READ_ONLY} - swept == alike.keys()
    assert set(alike.values()) <= swept
