"""Models in folders: loaded for any task, saved and loaded again, and told apart where they do not fit."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from helpers import READING, task_name
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import CheckpointError, InputError
from longspan.families.bert.model import BertConfig
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.longformer.model import Longformer, LongformerConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.tasks.registry import build

SMALL: dict[str, Any] = {
    "vocab_size": 41,
    "width": 12,
    "layers": 2,
    "heads": 3,
    "feed_forward": 20,
    "positions": 64,
}
LONGFORMER = LongformerConfig(**SMALL, radius=(4, 2))
OURS = [
    LongformerConfig(**SMALL, radius=4, dilation=(1, (1, 2, 3))),
    LongformerConfig(**SMALL, share_global_projections=True),
    BigBirdConfig(**SMALL, block=4, random_blocks=1, random="tf", full_up_to=8),
    BertConfig(**SMALL, radius=5),
    BertConfig(**SMALL, radius=5, position_offset=2, pad_id=1),
]
"""What transformers cannot express."""


def name(config: EncoderConfig) -> str:
    return type(config).__name__


def config_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


def change(folder: Path, **fields: Any) -> None:
    (folder / "config.json").write_text(json.dumps(config_of(folder) | fields))


def tensors(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def rewrite(folder: Path, found: Mapping[str, Tensor]) -> None:
    save_file(dict(found), folder / "model.safetensors")


def same(one: TaskModel, other: TaskModel) -> None:
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("task", READING)
@pytest.mark.parametrize("config", [LONGFORMER, *OURS], ids=name)
def test_what_we_save_we_load(tmp_path: Path, config: EncoderConfig, task: str) -> None:
    model = build(
        config, task, **({"pooling": "max", "normalize": True} if task == "encode" else {"labels": 4})
    )
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert not loaded.report
    assert loaded.model.config == config
    assert task_name(loaded.model) == task
    assert not loaded.model.training
    same(model, loaded.model)
    ids, layout = torch.arange(20), Layout.packed([12, 8], marked=[[0], [0]])
    # A mapped file does not lie where torch would lay it, and products depend on that in their last bit.
    torch.testing.assert_close(loaded.model(ids, layout), model.eval()(ids, layout))


@pytest.mark.parametrize("config", OURS, ids=name)
def test_what_transformers_would_compute_differently_it_does_not_find(
    tmp_path: Path, config: EncoderConfig
) -> None:
    save_model(build(config, "fill"), tmp_path)
    assert config_of(tmp_path)["model_type"].startswith("longspan-")
    assert all(name.startswith(("body.", "fill.")) for name in tensors(tmp_path))


def test_a_bare_body_can_be_saved(tmp_path: Path) -> None:
    body = Longformer(LONGFORMER)
    save_model(body, tmp_path)
    assert all(
        map(
            torch.equal, body.state_dict().values(), load_model(tmp_path).model.backbone.state_dict().values()
        )
    )


def test_a_body_serves_a_new_task_with_a_fresh_head(tmp_path: Path) -> None:
    save_model(build(LONGFORMER, "fill"), tmp_path)
    loaded = load_model(tmp_path, "classify", labels=["no", "yes", "perhaps"])
    assert loaded.labels == ("no", "yes", "perhaps")
    assert loaded.report.missing == (
        "classifier.dense.weight",
        "classifier.dense.bias",
        "classifier.out_proj.weight",
        "classifier.out_proj.bias",
    )
    assert all(name.startswith("lm_head.") for name in loaded.report.unexpected)
    assert "drawn anew" in loaded.notes[0]
    head = loaded.model.head.state_dict()
    assert 0 < head["dense.weight"].std() < 0.04
    assert not head["out.bias"].any()


def test_an_unused_global_projection_that_is_missing_is_copied(tmp_path: Path) -> None:
    save_model(build(LONGFORMER, "tag"), tmp_path)
    rewrite(tmp_path, {name: tensor for name, tensor in tensors(tmp_path).items() if "_global" not in name})
    loaded = load_model(tmp_path)
    assert len(loaded.report.missing) == 12
    assert loaded.notes == ("12 tensors of global projections were copied from the local ones.",)
    attention = loaded.model.backbone.state_dict()
    copied, local = (
        attention["layers.1.attention.global_value.bias"],
        attention["layers.1.attention.qkv.bias"],
    )
    assert torch.equal(copied, local[24:])


def test_a_missing_part_of_the_body_is_an_error(tmp_path: Path) -> None:
    save_model(build(LONGFORMER, "tag"), tmp_path)
    found = tensors(tmp_path)
    del found["longformer.encoder.layer.1.attention.self.key.weight"]
    rewrite(tmp_path, found)
    with pytest.raises(CheckpointError, match=r"lacks 1 tensors of the backbone.*self\.key\.weight"):
        load_model(tmp_path)


def test_our_own_files_hold_all_projections(tmp_path: Path) -> None:
    save_model(build(OURS[0], "tag"), tmp_path)
    rewrite(tmp_path, {key: tensor for key, tensor in tensors(tmp_path).items() if "global_key" not in key})
    with pytest.raises(CheckpointError, match="lacks 4 tensors of the backbone"):
        load_model(tmp_path)


def test_a_wrong_shape_is_an_error_that_names_both(tmp_path: Path) -> None:
    save_model(build(LONGFORMER, "tag", labels=4), tmp_path)
    with pytest.raises(
        CheckpointError, match=r"\(4, 12\), but the config asks for \(7, 12\).*ignore_mismatched"
    ):
        load_model(tmp_path, labels=7)
    loaded = load_model(tmp_path, labels=7, ignore_mismatched_sizes=True)
    assert loaded.report.mismatched[0] == ("classifier.weight", (4, 12), (7, 12))
    assert loaded.model.head.state_dict()["out.weight"].shape == (7, 12)
    change(tmp_path, intermediate_size=21)
    with pytest.raises(CheckpointError, match="intermediate"):
        load_model(tmp_path, labels=7, ignore_mismatched_sizes=True)


@pytest.mark.parametrize(
    "absurd",
    [
        {"num_hidden_layers": 1000, "attention_window": 4},
        {"hidden_size": 2**24, "num_attention_heads": 1},
        {"vocab_size": 2**24},
        {"intermediate_size": 2**24},
        {"max_position_embeddings": 2**24},
    ],
    ids=str,
)
def test_a_config_that_asks_for_more_than_the_file_has_allocates_nothing(
    tmp_path: Path, absurd: dict[str, Any]
) -> None:
    save_model(build(LONGFORMER, "fill"), tmp_path)
    change(tmp_path, **absurd)
    with pytest.raises(CheckpointError, match="config asks for"):
        load_model(tmp_path)


def test_unknown_fields_are_kept_and_never_acted_on(tmp_path: Path) -> None:
    save_model(build(LONGFORMER, "classify"), tmp_path, problem="multi")
    strange = {
        "auto_map": {"AutoModel": "evil--repo/code.Model"},
        "_attn_implementation": "evil/kernel",
        "trust_remote_code": True,
        "custom": {"deep": [1, None]},
    }
    change(tmp_path, **strange, torch_dtype="float16")
    before = set(sys.modules)
    loaded = load_model(tmp_path)
    assert not {
        name for name in set(sys.modules) - before if "evil" in name or name.startswith("transformers")
    }
    assert loaded.problem == "multi"
    save_model(loaded.model, tmp_path / "again", extra=loaded.config)
    again = config_of(tmp_path / "again")
    assert {name: again[name] for name in strange} == strange
    assert (again["problem_type"], again["dtype"]) == ("multi_label_classification", "float32")
    assert "torch_dtype" not in again
    with pytest.raises(InputError, match="trust_remote_code"):
        load_model(tmp_path, trust_remote_code=True)


def test_another_family_does_not_inherit_fields(tmp_path: Path) -> None:
    raw = {
        "model_type": "big_bird",
        "block_size": 64,
        "attention_dilation": [1],
        "is_decoder": True,
        "custom": 1,
    }
    save_model(build(LONGFORMER, "tag"), tmp_path, extra=raw)
    assert not {"block_size", "is_decoder", "attention_dilation"} & config_of(tmp_path).keys()
    assert config_of(tmp_path)["custom"] == 1


def test_only_what_must_be_stacked_is_copied(tmp_path: Path) -> None:
    save_model(build(LONGFORMER, "fill"), tmp_path)
    model = load_model(tmp_path).model
    assert model.get_parameter("head.decoder.weight") is model.backbone.word_embeddings.weight
    with torch.no_grad():
        model.backbone.word_embeddings.weight.zero_()  # a private view of the file
    assert load_model(tmp_path).model.backbone.word_embeddings.weight.any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", torch.float32])
def test_weights_are_cast_as_asked_and_kept_as_stored(tmp_path: Path, dtype: Any) -> None:
    save_model(build(LONGFORMER, "fill"), tmp_path)
    cast = load_model(tmp_path, dtype=dtype).model
    wanted = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    assert {parameter.dtype for parameter in cast.parameters()} == {wanted}
    save_model(cast, tmp_path / "cast")
    same(load_model(tmp_path / "cast").model, cast)
    with pytest.raises(InputError, match="dtype"):
        load_model(tmp_path, dtype="int8")


def test_weights_that_are_no_floating_point_numbers_are_refused(tmp_path: Path) -> None:
    save_model(build(LONGFORMER, "tag"), tmp_path)
    found = tensors(tmp_path)
    rewrite(tmp_path, found | {"classifier.bias": found["classifier.bias"].to(torch.int8)})
    for dtype in (None, "float32"):
        with pytest.raises(CheckpointError, match="int8"):
            load_model(tmp_path, dtype=dtype)


def test_old_names_and_foreign_prefixes_are_understood(tmp_path: Path) -> None:
    model = build(LONGFORMER, "answer")
    save_model(model, tmp_path)
    renamed = {
        name.replace("longformer.", "model.").replace("LayerNorm.weight", "LayerNorm.gamma"): tensor
        for name, tensor in tensors(tmp_path).items()
    }
    rewrite(tmp_path, renamed | {"model.embeddings.position_ids": torch.arange(66)})
    loaded = load_model(tmp_path)
    assert not loaded.report
    same(loaded.model, model)


def test_the_original_format_is_loaded_and_saved_as_that_of_hugging_face(tmp_path: Path) -> None:
    model = build(LONGFORMER, "fill")
    save_model(model, tmp_path)
    rewrite(
        tmp_path,
        {key.replace("longformer.", "roberta."): tensor for key, tensor in tensors(tmp_path).items()},
    )
    fields = {"attention_window": [4, 2], "attention_dilation": [1, 1], "autoregressive": False}
    change(
        tmp_path, **fields, model_type="roberta", attention_mode="tvm", architectures=["RobertaForMaskedLM"]
    )
    loaded = load_model(tmp_path)
    assert not loaded.report
    assert loaded.model.config == LONGFORMER
    same(loaded.model, model)
    save_model(loaded.model, tmp_path / "saved", extra=loaded.config)
    saved = config_of(tmp_path / "saved")
    assert (saved["model_type"], saved["attention_window"]) == ("longformer", [8, 4])
    assert not {"attention_dilation", "autoregressive", "attention_mode"} & saved.keys()
    assert saved["architectures"] == ["LongformerForMaskedLM"]
    same(load_model(tmp_path / "saved").model, model)


def test_a_masked_word_head_stored_by_the_names_of_its_decoder_is_tied(tmp_path: Path) -> None:
    model = build(LONGFORMER, "fill")
    with torch.no_grad():
        model.get_parameter("head.decoder.bias").normal_()
    save_model(model, tmp_path)
    found = tensors(tmp_path)
    found["lm_head.decoder.bias"] = found.pop("lm_head.bias")
    found["lm_head.decoder.weight"] = found["longformer.embeddings.word_embeddings.weight"].clone()
    rewrite(tmp_path, found)
    loaded = load_model(tmp_path)
    assert not loaded.report
    assert loaded.model.get_parameter("head.decoder.weight") is loaded.model.backbone.word_embeddings.weight
    same(loaded.model, model)


def test_a_file_that_is_no_encoder_is_refused(tmp_path: Path) -> None:
    save_model(build(LONGFORMER, "tag"), tmp_path)
    rewrite(tmp_path, {"weight": torch.zeros(2)})
    with pytest.raises(CheckpointError, match="no table of word embeddings"):
        load_model(tmp_path)


def test_the_dropout_of_a_head_is_its_own(tmp_path: Path) -> None:
    save_model(build(BertConfig(**SMALL), "classify"), tmp_path)
    change(tmp_path, classifier_dropout=0.3)
    loaded = load_model(tmp_path)
    assert vars(loaded.model.head)["dropout"] == 0.3
    save_model(loaded.model, tmp_path / "again")
    assert config_of(tmp_path / "again")["classifier_dropout"] == 0.3
    change(tmp_path, classifier_dropout="often")
    with pytest.raises(InputError, match="classifier_dropout"):
        load_model(tmp_path)


def test_an_unknown_class_asks_for_the_task(tmp_path: Path) -> None:
    save_model(build(LONGFORMER, "tag"), tmp_path)
    change(tmp_path, architectures=["LongformerForDreams"])
    with pytest.raises(InputError, match="task="):
        load_model(tmp_path)
    assert task_name(load_model(tmp_path, "tag").model) == "tag"
    with pytest.raises(InputError, match="`task` must be one of"):
        load_model(tmp_path, "dream")


def test_wrong_labels_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 names, as many as the head gives"):
        save_model(build(LONGFORMER, "tag"), tmp_path, labels=["one"])
    with pytest.raises(InputError, match="problem"):
        save_model(build(LONGFORMER, "classify"), tmp_path, problem="hard")
