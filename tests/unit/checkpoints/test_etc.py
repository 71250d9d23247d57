"""ETC on disk: etcmodel's checkpoints compute here what they compute there, ours come back bit for bit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers import READING, task_name
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import CheckpointError, InputError
from longspan.families.etc.model import Etc, EtcConfig
from longspan.layout import Layout
from longspan.tasks.registry import build
from unit.checkpoints.etc_oracle import Array, streams, variables
from unit.formats import bundle

REAL = Path(__file__).parent / "etc_checkpoints"
SMALL: dict[str, Any] = {
    "vocab_size": 31,
    "segment_vocab_size": 3,
    "hidden_size": 10,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 14,
    "local_radius": 3,
    "relative_pos_max_distance": 4,
    "relative_vocab_size": 13,
}
SWITCHES: dict[str, dict[str, Any]] = {
    "all": {},
    "all, hard masks": {"use_hard_g2l_mask": True, "use_hard_l2g_mask": True},
    "all, one output": {"share_att_output_projection": True},
    "all, two feed-forward layers": {"share_feed_forward_params": False},
    "all, narrow": {"embedding_size": 7},
    "all, positions": {"max_absolute_position_embeddings": 29},
    "sides": {"share_qkv_projections": False, "share_kv_projections": True},
    "none": {"share_qkv_projections": False},
    "all, whatever of sides": {"share_kv_projections": True},
    "none, the most parts": {
        "share_qkv_projections": False,
        "share_feed_forward_params": False,
        "embedding_size": 7,
        "max_absolute_position_embeddings": 29,
        "use_hard_g2l_mask": True,
    },
    "sides, the fewest parts": {
        "share_qkv_projections": False,
        "share_kv_projections": True,
        "share_att_output_projection": True,
    },
}


def written(folder: Path, config: dict[str, Any], tensors: dict[str, Array], **more: Any) -> None:
    slots = {f"{name}/adam_{which}": np.zeros(2) for name in list(tensors)[:3] for which in "mv"}
    bundle.write(folder, tensors | slots | {"global_step": np.int64(7)} | more, shards=2)
    (folder / "etc_config.json").write_text(json.dumps(config))


def in_blocks(body: Any, size: int) -> Etc:
    """The model with one global token for so many tokens."""
    assert isinstance(body, Etc)
    body.config = replace(body.config, block=size)
    return body


@pytest.mark.parametrize("sharing", ["all", "sides", "none"])
def test_a_checkpoint_computes_what_the_original_code_computes(sharing: str) -> None:
    loaded = load_model(REAL / sharing)
    assert not loaded.report
    assert task_name(loaded.model) == "encode"
    assert loaded.model.config.sharing == sharing  # type: ignore[attr-defined]
    given = np.load(REAL / sharing / "expected.npz")
    assert given["parent"].tolist() == (np.arange(17) // 5).tolist()
    with torch.no_grad():
        ids = torch.from_numpy(given["ids"]).long()
        found = in_blocks(loaded.model.backbone, 5).streams(ids, Layout.packed([17]))
    assert found.structure.words.tolist() == given["global_ids"].tolist()
    for ours, theirs in ((found.long, given["long"]), (found.globals, given["top"])):
        torch.testing.assert_close(ours, torch.from_numpy(theirs), rtol=0, atol=4e-6)


@pytest.mark.parametrize("switches", SWITCHES)
def test_made_up_weights_compute_what_the_definition_says(switches: str, tmp_path: Path) -> None:
    config = SMALL | SWITCHES[switches]
    tensors = variables(config)
    written(tmp_path, config, tensors)
    loaded = load_model(tmp_path)
    assert not loaded.report
    body = in_blocks(loaded.model.double().backbone, 4)
    for name, value in body.named_parameters():
        assert value.dtype == torch.float64, name
    lengths, draw = [1, 13, 6], np.random.default_rng(5)
    ids = [draw.integers(0, 31, n) for n in lengths]
    with torch.no_grad():
        found = body.streams(torch.from_numpy(np.concatenate(ids)), Layout.packed(lengths))
    wanted = [
        streams(tensors, config, one, np.ones(-(-len(one) // 4), int), np.arange(len(one)) // 4)
        for one in ids
    ]
    for ours, parts in zip((found.long, found.globals), zip(*wanted, strict=True), strict=True):
        np.testing.assert_allclose(ours.numpy(), np.concatenate(parts), rtol=0, atol=1e-12)


def same(one: torch.nn.Module, other: torch.nn.Module) -> None:
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("switches", SWITCHES)
def test_what_was_read_is_saved_as_ours_and_comes_back_bit_for_bit(switches: str, tmp_path: Path) -> None:
    config = SMALL | SWITCHES[switches]
    tensors = {name: value.astype("<f4") for name, value in variables(config).items()}
    written(tmp_path / "theirs", config | {"remark": "kept"}, tensors)
    loaded = load_model(tmp_path / "theirs")
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    raw = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert raw["model_type"] == "longspan-etc"
    assert raw["remark"] == "kept"
    assert not set(SMALL) & set(raw)
    again = load_model(tmp_path / "ours")
    assert not again.report
    assert again.model.config == loaded.model.config
    same(again.model, loaded.model)
    save_model(again.model, tmp_path / "twice", extra=again.config)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("ours", "twice")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("task", READING)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_models_for_all_tasks_come_back_bit_for_bit(task: str, dtype: torch.dtype, tmp_path: Path) -> None:
    config = EtcConfig(
        vocab_size=31,
        width=10,
        layers=2,
        heads=2,
        feed_forward=14,
        token_types=3,
        radius=3,
        distance=4,
        relative=13,
    )
    model = build(config, task, **({} if task == "encode" else {"labels": 3})).to(dtype)
    save_model(model, tmp_path, labels=["a", "b", "c"] if task in ("classify", "tag") else None)
    loaded = load_model(tmp_path)
    assert task_name(loaded.model) == task
    assert loaded.model.config == config
    same(loaded.model, model)


def test_a_head_for_masked_words_is_read_where_there_is_one(tmp_path: Path) -> None:
    head = "cls/predictions"
    draw = np.random.default_rng(1)
    given = {
        f"{head}/transform/dense/kernel": draw.normal(size=(10, 10)),
        f"{head}/transform/dense/bias": draw.normal(size=10),
        f"{head}/transform/LayerNorm/gamma": draw.normal(size=10),
        f"{head}/transform/LayerNorm/beta": draw.normal(size=10),
        f"{head}/output_bias": draw.normal(size=31),
    }
    written(tmp_path, SMALL, variables(SMALL), **given)
    loaded = load_model(tmp_path, "fill")
    assert not loaded.report
    assert loaded.notes == ()
    head_ours = dict(loaded.model.head.named_parameters())
    assert torch.equal(
        head_ours["dense.weight"].double(), torch.from_numpy(given[f"{head}/transform/dense/kernel"]).T
    )
    assert torch.equal(head_ours["decoder.bias"].double(), torch.from_numpy(given[f"{head}/output_bias"]))
    assert head_ours["decoder.weight"] is loaded.model.backbone.word_embeddings.weight


def test_without_such_a_head_it_is_drawn_and_said(tmp_path: Path) -> None:
    written(tmp_path, SMALL, variables(SMALL))
    loaded = load_model(tmp_path, "fill")
    assert "drawn anew" in loaded.notes[0]


def test_another_name_of_the_whole_model_does_not_matter(tmp_path: Path) -> None:
    tensors = variables(SMALL)
    written(tmp_path, SMALL, {f"a/b/{name}": value for name, value in tensors.items()})
    assert not load_model(tmp_path).report


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"vocab_size": None}, "`vocab_size` must be a whole number"),
        ({"hidden_size": 0}, "`hidden_size` must be at least 1"),
        ({"hidden_size": 11}, "`hidden_size` must be a multiple of the 2 heads"),
        ({"num_hidden_layers": 10**9}, "`num_hidden_layers` must be at most"),
        ({"local_radius": 0}, "`local_radius` must be at least 1"),
        ({"relative_vocab_size": 11}, "`relative_vocab_size` must be at least 12"),
        ({"att_size_per_head": 64}, "`att_size_per_head` must be null or 5"),
        ({"use_pre_activation_order": True}, "`use_pre_activation_order` must be false"),
        ({"share_qkv_projections": 1}, "`share_qkv_projections` must be true or false"),
        ({"hidden_act": "os.system"}, "`activation` must be one of|`hidden_act` must be one of"),
        ({"hidden_act": 3}, "`hidden_act` must be a word"),
        ({"embedding_size": -1}, "must be at least 1"),
        ({"segment_vocab_size": 1}, "must be at most 0"),
    ],
)
def test_a_config_that_cannot_be_is_an_error_in_the_files_words(
    fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    written(tmp_path, SMALL | fields, {})
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


def test_fields_that_are_absent_mean_what_etcmodel_means(tmp_path: Path) -> None:
    (tmp_path / "etc_config.json").write_text('{"vocab_size": 99}')
    from longspan.checkpoints.load import read_raw
    from longspan.families.registry import read_config

    family, config = read_config(read_raw(tmp_path))
    assert family.name == "Etc"
    assert config == EtcConfig(vocab_size=99)


@pytest.mark.parametrize(
    "lost", ["long_query_projection/linear/kernel", "layer_norm_1/gamma", "relative_bias_table"]
)
def test_a_weight_that_is_missing_is_named(lost: str, tmp_path: Path) -> None:
    tensors = {name: value for name, value in variables(SMALL).items() if not name.endswith(lost)}
    written(tmp_path, SMALL, tensors)
    with pytest.raises(CheckpointError, match=r"it lacks \d tensors of the backbone"):
        load_model(tmp_path)


def test_a_kernel_of_another_shape_is_refused(tmp_path: Path) -> None:
    tensors = variables(SMALL)
    name = next(name for name in tensors if name.endswith("layer_0/kernel"))
    written(tmp_path, SMALL, tensors | {name: tensors[name].T.copy()})
    with pytest.raises(CheckpointError, match="but the config asks for"):
        load_model(tmp_path)


def test_a_weight_is_read_when_it_is_needed_and_its_checksum_compared(tmp_path: Path) -> None:
    written(tmp_path, SMALL, variables(SMALL))
    path = tmp_path / "model.ckpt.data-00001-of-00002"
    data = bytearray(path.read_bytes())
    data[-1] ^= 4
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="do not match their checksum"):
        load_model(tmp_path)


def test_gradients_reach_every_weight_of_a_checkpoint() -> None:
    body = in_blocks(load_model(REAL / "none").model.backbone, 5)
    found = body.streams(torch.arange(6, 23), Layout.packed([17]))
    (found.long.square().sum() + found.globals.square().sum()).backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in body.parameters())
