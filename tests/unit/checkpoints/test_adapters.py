"""Adapters of low rank: which layers get one, what is trained, saved and merged, and what is refused."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import longspan
from longspan.checkpoints.adapters import save_adapter
from longspan.checkpoints.load import load_model
from longspan.checkpoints.lora import add_lora
from longspan.checkpoints.save import save_model
from longspan.errors import CheckpointError, InputError
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.lora import lora_layers, merge_and_unload
from longspan.nn.quantized import quantize
from longspan.reader import Reader
from longspan.tasks.registry import build
from unit.tasks.tiny import CORPUS, FAMILIES, config, tokenizer, writer

LAYOUT = Layout.packed([13, 6])
IDS = torch.randint(5, 400, (19,), generator=torch.Generator().manual_seed(1))
QKV = "backbone.layers.0.attention.qkv"
QUERY = "base_model.model.longformer.encoder.layer.0.attention.self.query"


def model(family: str = "longformer", task: str = "classify") -> TaskModel:
    torch.manual_seed(3)
    return build(config(family), task, labels=3).eval()


def disturbed(made: TaskModel, **options: Any) -> TaskModel:
    """The model with an adapter as if it had been trained."""
    add_lora(made, **{"r": 2, **options})
    draw = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape, generator=draw), alpha=0.3)
    return made


def output(made: TaskModel) -> Tensor:
    with torch.no_grad():
        found: Tensor = made(IDS, LAYOUT)
    return found


def trained(made: nn.Module) -> set[str]:
    return {name for name, parameter in made.named_parameters() if parameter.requires_grad}


def folders(place: Path, family: str = "longformer", **options: Any) -> TaskModel:
    """A model in `base`, its adapter in `adapter`, and the model with it."""
    made = model(family)
    save_model(made, place / "base")
    disturbed(made, **options)
    save_adapter(made, place / "adapter")
    return made


@pytest.mark.parametrize("family", FAMILIES)
def test_only_thin_matrices_and_the_head_are_trained_and_all_of_them(family: str) -> None:
    made = model(family)
    before = output(made)
    changed = add_lora(made, r=2)
    linears = {name for name, part in made.named_modules() if isinstance(part, nn.Linear)}
    assert set(changed) == {name for name in linears if name.startswith("backbone.")}
    torch.testing.assert_close(output(made), before, rtol=1e-5, atol=1e-5)
    for name in trained(made):
        assert name.startswith("head.") or ".lora_" in name
    marked = Layout.packed([13, 6], marked=[[0], [0]]) if family == "longformer" else LAYOUT
    made(IDS, marked).sum().backward()
    lost = [name for name in trained(made) if made.get_parameter(name).grad is None]
    assert not lost
    untouched = [one for name, one in made.named_parameters() if name not in trained(made)]
    assert all(one.grad is None for one in untouched)


def test_layers_are_chosen_by_our_names_and_by_those_of_transformers() -> None:
    for wanted, parts in (
        (["query", "value"], [(0, 16), (32, 48)]),
        (["attention.self.key"], [(16, 32)]),
        (["qkv"], [(0, 16), (16, 32), (32, 48)]),
        (r".*layers\.\d\.attention\.qkv", [(0, 16), (16, 32), (32, 48)]),
        (r"longformer\.encoder\..*\.(key|value)", [(16, 32), (32, 48)]),
    ):
        made = model()
        assert add_lora(made, target_modules=wanted) == (QKV, QKV.replace("0", "1"))
        assert [tuple(part) for part in lora_layers(made)[QKV].parts] == parts


def test_all_linear_is_all_of_a_backbone_and_of_a_plain_module() -> None:
    plain = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 2)))
    assert add_lora(plain, r=1) == ("0", "2.0")
    assert trained(plain) == {"0.lora_A.0", "0.lora_B.0", "2.0.lora_A.0", "2.0.lora_B.0"}
    assert "head.dense" in add_lora(model(), target_modules=["dense", "qkv"], modules_to_save=[])


@pytest.mark.parametrize("task", ["classify", "tag", "fill", "encode"])
def test_a_head_is_trained_whole_where_it_is_new(task: str) -> None:
    made = model("bert", task)
    add_lora(made)
    heads = {name for name in trained(made) if name.startswith("head.")}
    assert bool(heads) == (task in ("classify", "tag"))
    assert set(made.saved_whole) == heads


def test_other_modules_are_trained_whole_by_name() -> None:
    made = model()
    add_lora(made, modules_to_save=["embeddings.positions", "classifier.out_proj"])
    assert set(made.saved_whole) == {
        "backbone.embeddings.positions.weight",
        "head.out.weight",
        "head.out.bias",
    }
    made = model()
    add_lora(made, modules_to_save=["layers.1.attention"])
    assert f"{QKV.replace('0', '1')}.weight" in made.saved_whole
    assert QKV.replace("0", "1") not in lora_layers(made)


def test_what_was_frozen_before_stays_so() -> None:
    made = model()
    made.head.get_parameter("out.bias").requires_grad_(False)
    add_lora(made)
    assert "head.out.bias" not in made.saved_whole
    assert "head.out.bias" not in trained(made)


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_and_loaded_it_computes_the_same(tmp_path: Path, family: str) -> None:
    made = folders(tmp_path, family)
    plain = load_model(tmp_path / "base").model
    merged = load_model(tmp_path / "base", adapter=tmp_path / "adapter")
    assert not merged.notes
    assert not torch.allclose(output(plain), output(made), atol=1e-2)
    torch.testing.assert_close(output(merged.model), output(made), rtol=1e-4, atol=1e-5)
    assert not lora_layers(merged.model)
    assert torch.equal(output(load_model(tmp_path / "base").model), output(plain))  # the file is as it was
    merge_and_unload(made)
    save_model(made, tmp_path / "merged")
    torch.testing.assert_close(
        output(load_model(tmp_path / "merged").model), output(merged.model), rtol=1e-4, atol=1e-5
    )


def test_a_model_that_only_longspan_has_gets_adapters_too(tmp_path: Path) -> None:
    sizes = {name: getattr(config("bert"), name) for name in ("vocab_size", "width", "layers", "heads")}
    own = PoolingformerConfig(**sizes, feed_forward=24, positions=64, radius=4, two_level=(1,))
    torch.manual_seed(3)
    made = build(own, "classify", labels=3).eval()
    save_model(made, tmp_path / "base")
    disturbed(made)
    save_adapter(made, tmp_path / "adapter")
    merged = load_model(tmp_path / "base", adapter=tmp_path / "adapter").model
    torch.testing.assert_close(output(merged), output(made), rtol=1e-4, atol=1e-5)


def test_half_weights_are_merged_in_float32_and_rounded_once(tmp_path: Path) -> None:
    made = folders(tmp_path)
    half = load_model(tmp_path / "base", adapter=tmp_path / "adapter", dtype="bfloat16").model
    base = load_model(tmp_path / "base", dtype="bfloat16").model.get_parameter(f"{QKV}.weight")
    layer = lora_layers(made)[QKV]
    a, b = layer.factors()
    assert torch.equal(half.get_parameter(f"{QKV}.weight"), (base.float() + b @ a).bfloat16())


def test_an_adapter_that_is_merged_at_present_is_saved_as_well(tmp_path: Path) -> None:
    made = folders(tmp_path)
    for layer in lora_layers(made).values():
        layer.merge()
    save_adapter(made, tmp_path / "again")
    one, two = (load_file(tmp_path / name / "adapter_model.safetensors") for name in ("adapter", "again"))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_files_are_those_of_peft(tmp_path: Path) -> None:
    made = model()
    disturbed(made, target_modules=["query"], lora_alpha=3, use_rslora=True)
    save_adapter(made, tmp_path, base="allenai/longformer-base-4096")
    stated = json.loads((tmp_path / "adapter_config.json").read_text())
    names = [f"longformer.encoder.layer.{i}.attention.self.query" for i in range(2)]
    assert stated["target_modules"] == names
    assert stated["modules_to_save"] == ["classifier"]
    assert stated["task_type"] == "SEQ_CLS"
    assert stated["base_model_name_or_path"] == "allenai/longformer-base-4096"
    assert (stated["r"], stated["lora_alpha"], stated["use_rslora"]) == (2, 3, True)
    tensors = load_file(tmp_path / "adapter_model.safetensors")
    assert tensors[f"{QUERY}.lora_A.weight"].shape == (2, 16)
    assert {name.removeprefix("base_model.model.") for name in tensors if "lora" not in name} == {
        f"classifier.{part}.{leaf}" for part in ("dense", "out_proj") for leaf in ("weight", "bias")
    }
    assert len(tensors) == 8


def test_a_save_takes_the_place_of_an_older_one_and_leaves_other_files(tmp_path: Path) -> None:
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_model.bin").write_bytes(b"old")
    (tmp_path / "adapter" / "README.md").write_text("mine")
    folders(tmp_path)
    found = {path.name for path in (tmp_path / "adapter").iterdir()}
    assert found == {"adapter_config.json", "adapter_model.safetensors", "README.md"}


def test_a_reader_learns_saves_and_loads_an_adapter(tmp_path: Path) -> None:
    first = Reader(model(), tokenizer("longformer"), labels=["a", "b", "c"])
    first.save(tmp_path / "base")
    assert first.add_lora(r=2, target_modules=["query", "value"]) == (QKV, QKV.replace("0", "1"))
    for parameter in first.model.parameters():
        if parameter.requires_grad:
            parameter.data += 0.3
    first.save_adapter(tmp_path / "adapter", base=str(tmp_path / "base"))
    wanted = first.classify(list(CORPUS), top_k=None)
    second = longspan.load(tmp_path / "base", adapter=tmp_path / "adapter")
    third = longspan.load(tmp_path / "base", adapter=str(tmp_path / "adapter"), precision="int8")
    first.save(tmp_path / "merged")  # which the adapter beside the weights survives
    assert lora_layers(first.model)
    assert first.classify(list(CORPUS), top_k=None) == wanted
    fourth = longspan.load(tmp_path / "merged")
    assert first.merge_and_unload() is first
    assert not lora_layers(first.model)
    for reader, far in ((first, 1e-5), (second, 1e-5), (third, 0.05), (fourth, 1e-5)):
        for mine, right in zip(reader.classify(list(CORPUS), top_k=None), wanted, strict=True):
            scores = {one["label"]: one["score"] for one in right}
            assert {one["label"]: one["score"] for one in mine} == pytest.approx(scores, abs=far)


def test_the_number_of_classes_comes_with_the_adapter(tmp_path: Path) -> None:
    folders(tmp_path)
    save_model(model(task="encode"), tmp_path / "base")
    with pytest.raises(
        CheckpointError, match=r"classifier.out_proj.weight' has the shape \(3, 16\).*Give labels="
    ):
        load_model(tmp_path / "base", "classify", labels=5, adapter=tmp_path / "adapter")
    found = load_model(tmp_path / "base", "classify", labels=3, adapter=tmp_path / "adapter")
    assert not found.notes  # no head is drawn anew
    plain = load_model(tmp_path / "base", "encode", adapter=tmp_path / "adapter")
    assert plain.notes == ("4 tensors of the adapter belong to modules that the task does not use.",)


def test_words_that_are_shared_are_not_changed_in_one_place(tmp_path: Path) -> None:
    made = model("bert", "fill")
    with pytest.raises(InputError, match="`modules_to_save` must be modules whose weights no other has"):
        add_lora(made, modules_to_save=["embeddings.words"])
    save_model(made, tmp_path / "base")
    disturbed(made, target_modules=["decoder", "query"])
    save_adapter(made, tmp_path / "adapter")
    with pytest.raises(CheckpointError, match="the weight is that of the embeddings and of the head"):
        load_model(tmp_path / "base", adapter=tmp_path / "adapter")


def test_words_are_shared_by_whatever_name_they_are_changed(tmp_path: Path) -> None:
    save_model(model("bert", "fill"), tmp_path / "base")
    folders(tmp_path / "other", "bert", target_modules=["query"])
    path = tmp_path / "other/adapter/adapter_model.safetensors"
    tensors = load_file(path)
    table = "base_model.model.embeddings.word_embeddings.lora_embedding_"
    save_file(tensors | {f"{table}A": torch.ones(2, 420), f"{table}B": torch.ones(16, 2)}, path)
    with pytest.raises(CheckpointError, match="the weight is that of the embeddings and of the head"):
        load_model(tmp_path / "base", adapter=tmp_path / "other/adapter")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"target_modules": ["queri"]},
            "`target_modules` must be names of linear layers.*Did you mean query",
        ),
        (
            {"target_modules": ["query", "wqkv"]},
            "`target_modules` must be names of linear layers, but is 'wqkv'",
        ),
        ({"target_modules": "nothing"}, "`target_modules` must be names of linear layers, but is 'nothing'"),
        ({"target_modules": "(("}, "`target_modules` must be a regular expression"),
        ({"target_modules": []}, r"`target_modules` must be names of linear layers, but is \[\]"),
        ({"target_modules": [3]}, "`target_modules` must be a list of names, but is 3"),
        (
            {"modules_to_save": ["classifiers"]},
            "`modules_to_save` must be names of modules.*Did you mean class",
        ),
        (
            {"modules_to_save": "head"},
            r"`modules_to_save` must be a list of names, but is 'head'. Write \['head",
        ),
        ({"r": 0}, "`r` must be at least 1"),
    ],
)
def test_names_that_there_are_not_are_refused_and_nothing_is_frozen(options: Any, message: str) -> None:
    made = model()
    with pytest.raises(InputError, match=message):
        add_lora(made, **options)
    assert all(parameter.requires_grad for parameter in made.parameters())
    assert not lora_layers(made)


def test_a_second_adapter_int8_and_models_without_one_are_refused(tmp_path: Path) -> None:
    made = model()
    with pytest.raises(InputError, match="`model` must be one with an adapter, but is 'without'"):
        save_adapter(made, tmp_path)
    add_lora(made)
    with pytest.raises(InputError, match="`model` must be one without an adapter, but is 'with one'"):
        add_lora(made)
    small = model()
    quantize(small)
    with pytest.raises(InputError, match="`model` must be of floating-point weights, but is 'int8'"):
        add_lora(small)
    other = model("bert", "encode")
    other.saved_whole = ("head.nowhere.weight",)
    add_lora(other)
    other.saved_whole = ("head.nowhere.weight",)
    with pytest.raises(InputError, match="`modules_to_save` must be modules that a file of the model holds"):
        save_adapter(other, tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_adapter_is_a_folder_or_a_name_that_the_file_knows(tmp_path: Path) -> None:
    folders(tmp_path)
    for wanted in (tmp_path / "base", str(tmp_path), tmp_path / "nowhere"):
        with pytest.raises(
            InputError, match=r"`adapter` must be a folder with adapter_config.json, or a name"
        ):
            load_model(tmp_path / "base", adapter=wanted)
    with pytest.raises(
        InputError, match="`adapter` must be None for Longformer, or the folder of an adapter"
    ):
        load_model(tmp_path / "base", adapter="retrieval.query")


Damage = Callable[[dict[str, Any], dict[str, Tensor]], object]


def _rename(tensors: dict[str, Tensor], old: str, new: str) -> None:
    tensors[new] = tensors.pop(old)


A, B = f"{QUERY}.lora_A.weight", f"{QUERY}.lora_B.weight"
HOSTILE: dict[str, tuple[Damage, str]] = {
    "another method": (lambda c, t: c.update(peft_type="IA3"), "it is of the type 'IA3'"),
    "trained biases": (lambda c, t: c.update(bias="all"), "it trained biases"),
    "dora": (lambda c, t: c.update(use_dora=True), "does not know 'use_dora': True"),
    "something new": (lambda c, t: c.update(warp={"x": 1}), "does not know 'warp'"),
    "other weights": (lambda c, t: c.update(init_lora_weights="pissa"), "weights that 'pissa' has changed"),
    "a huge rank": (lambda c, t: c.update(r=10**9), "`r` must be at most"),
    "no rank": (lambda c, t: c.update(r=0), "`r` must be at least 1"),
    "rank of text": (lambda c, t: c.update(r="2"), "`r` must be a whole number"),
    "alpha of text": (lambda c, t: c.update(lora_alpha="x"), "`lora_alpha` must be a number"),
    "rslora of text": (lambda c, t: c.update(use_rslora="yes"), "`use_rslora` must be true or false"),
    "a pattern without end": (
        lambda c, t: c.update(rank_pattern={"(a+)+$": 3}),
        "`rank_pattern` must be numbers by plain names of modules",
    ),
    "patterns of another kind": (
        lambda c, t: c.update(alpha_pattern=[1]),
        "`alpha_pattern` must be numbers by",
    ),
    "rank zero of one": (
        lambda c, t: c.update(rank_pattern={"query": 0}),
        "`rank_pattern` must be at least 1",
    ),
    "another rank": (lambda c, t: c.update(r=3), r"has the shape \(2, 16\), but must have \(3, 16\)"),
    "another rank of one": (lambda c, t: c.update(rank_pattern={"query": 5}), r"must have \(5, 16\)"),
    "wide A": (lambda c, t: t.update({A: torch.zeros(2, 17)}), r"has the shape \(2, 17\)"),
    "tall B": (lambda c, t: t.update({B: torch.zeros(48, 2)}), r"has the shape \(48, 2\)"),
    "flat A": (lambda c, t: t.update({A: torch.zeros(32)}), r"has the shape \(32,\)"),
    "whole numbers": (lambda c, t: t.update({A: torch.zeros(2, 16, dtype=torch.int64)}), "holds torch.int64"),
    "no B": (lambda c, t: t.pop(B), "it has no 'longformer.encoder.layer.0.attention.self.query.lora_B"),
    "an unknown layer": (
        lambda c, t: t.update({A.replace("layer.0", "layer.7"): torch.zeros(2, 16)}),
        "nothing is called 'base_model.model.longformer.encoder.layer.7",
    ),
    "no prefix": (lambda c, t: _rename(t, A, "query.lora_A.weight"), "it has no|nothing is called"),
    "an unknown tensor": (lambda c, t: t.update({"base_model.model.x": torch.zeros(1)}), "nothing is called"),
    "a bias of a change": (
        lambda c, t: t.update({f"{QUERY}.lora_B.bias": torch.zeros(16)}),
        "nothing is called",
    ),
    "a magnitude": (
        lambda c, t: t.update({f"{QUERY}.lora_magnitude_vector": torch.zeros(16)}),
        "nothing is called",
    ),
}


@pytest.mark.parametrize("damage", HOSTILE)
def test_files_that_are_not_what_they_should_be_are_refused(tmp_path: Path, damage: str) -> None:
    folders(tmp_path, target_modules=["query"])
    stated = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    tensors = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    change, message = HOSTILE[damage]
    change(stated, tensors)
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(stated))
    save_file(tensors, tmp_path / "adapter" / "adapter_model.safetensors")
    with pytest.raises((CheckpointError, InputError), match=message):
        load_model(tmp_path / "base", adapter=tmp_path / "adapter")


def test_fields_that_say_nothing_of_the_change_are_left_alone(tmp_path: Path) -> None:
    made = folders(tmp_path)
    path = tmp_path / "adapter" / "adapter_config.json"
    stated = json.loads(path.read_text())
    stated |= {
        "lora_dropout": 0.5,
        "auto_mapping": {"x": "y"},
        "new_field": None,
        "another": False,
        "third": {},
    }
    path.write_text(json.dumps(stated))
    merged = load_model(tmp_path / "base", adapter=tmp_path / "adapter").model
    torch.testing.assert_close(output(merged), output(made), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_files_that_are_cut_linked_or_missing_are_refused(tmp_path: Path, name: str) -> None:
    folders(tmp_path)
    path = tmp_path / "adapter" / name
    whole = path.read_bytes()
    for size in (0, 7, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=re.escape(name)):
            load_model(tmp_path / "base", adapter=tmp_path / "adapter")
    (tmp_path / "elsewhere").write_bytes(whole)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="outside its folder"):
        load_model(tmp_path / "base", adapter=tmp_path / "adapter")


def test_a_pickled_adapter_is_not_opened(tmp_path: Path) -> None:
    folders(tmp_path)
    (tmp_path / "adapter" / "adapter_model.safetensors").rename(tmp_path / "adapter" / "adapter_model.bin")
    with pytest.raises(
        CheckpointError, match=r"adapter_model.bin` is refused: it may hold code. Load it by peft"
    ):
        load_model(tmp_path / "base", adapter=tmp_path / "adapter")


def test_a_writer_has_thin_matrices_for_the_values_of_its_cross_attention() -> None:
    made = copy.deepcopy(writer())
    add_lora(made, target_modules=["encoder_attn.v_proj"])
    found = lora_layers(made)["backbone.decoder.layers.0.cross.kv"]
    assert [tuple(part) for part in found.parts] == [(16, 32)]
