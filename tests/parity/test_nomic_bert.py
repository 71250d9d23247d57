"""Nomic BERT by the config of its authors: the same model, and scaled angles beyond the trained length."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import longspan
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError
from longspan.families.nomic_bert.model import NomicBertConfig
from longspan.layout import Layout
from parity.peers import close, output, peer, rewritten, words
from unit.tasks.tiny import VOCABULARY, tokenizer

NATIVE = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "layer_norm_eps",
    "max_position_embeddings",
    "rope_parameters",
    "head_dim",
)
AUTHORS: dict[str, Any] = {
    "activation_function": "swiglu",
    "attn_pdrop": 0.0,
    "causal": False,
    "embd_pdrop": 0.0,
    "fused_bias_fc": True,
    "layer_norm_epsilon": 1e-12,
    "max_trained_positions": 30,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "n_embd": 24,
    "n_head": 3,
    "n_inner": 40,
    "n_layer": 2,
    "n_positions": 96,
    "pad_vocab_size_multiple": 64,
    "parallel_block": False,
    "prenorm": False,
    "qkv_proj_bias": False,
    "resid_pdrop": 0.0,
    "rotary_emb_base": 700,
    "rotary_emb_fraction": 1.0,
    "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None,
    "rotary_scaling_factor": None,
    "scale_attn_weights": True,
    "use_rms_norm": False,
}
PLAIN = {"rope_type": "default", "rope_theta": 700.0}


def authors(folder: Path, **changes: Any) -> Any:
    """A folder by the authors' names, and transformers' model of the same weights."""
    rope = changes.pop("rope", PLAIN)
    theirs = peer("NomicBert", "Model", rope_parameters=rope, max_position_embeddings=30)
    theirs.save_pretrained(folder)
    rewritten(folder, *NATIVE, **AUTHORS | changes)
    return theirs


def same(theirs: Any, folder: Path, *lengths: int) -> None:
    loaded = load_model(folder)
    assert not loaded.report
    for n in lengths:
        (ids,) = words(n)
        with torch.no_grad():
            close(loaded.model.backbone(ids, Layout.packed([n])), output(theirs(ids[None])))


def test_the_authors_config_gives_the_same_model(tmp_path: Path) -> None:
    theirs = authors(tmp_path)
    same(theirs, tmp_path, 1, 30, 90)
    config = load_model(tmp_path).model.config
    assert isinstance(config, NomicBertConfig)
    assert (config.positions, config.trained_positions) == (96, 30)


def test_angles_are_scaled_beyond_the_trained_length_if_the_file_says_so(tmp_path: Path) -> None:
    """base' = base * (f * n / trained - (f - 1)) ^ (D / (D - 2)): transformers' dynamic scaling, and ours."""
    theirs = authors(
        tmp_path, rotary_scaling_factor=2.0, rope={**PLAIN, "rope_type": "dynamic", "factor": 2.0}
    )
    for n in (29, 30, 31, 90):  # each alone, as transformers keeps the angles of the longest so far
        same(theirs, tmp_path, n)


def test_scaling_goes_by_each_document_and_not_by_its_batch(tmp_path: Path) -> None:
    authors(tmp_path, rotary_scaling_factor=2.0)
    model = load_model(tmp_path).model.backbone
    ids = words(80, 12, 45)
    with torch.no_grad():
        together = model(torch.cat(ids), Layout.packed([80, 12, 45])).split([80, 12, 45])
        for one, found in zip(ids, together, strict=True):
            close(found, model(one, Layout.packed([len(one)])))


def test_both_dialects_in_one_file_are_read_and_kept(tmp_path: Path) -> None:
    peer("NomicBert", "Model", max_position_embeddings=30).save_pretrained(tmp_path / "theirs")
    rewritten(tmp_path / "theirs", **{**AUTHORS, "rotary_emb_base": 1000})
    before = json.loads((tmp_path / "theirs" / "config.json").read_text())
    loaded = load_model(tmp_path / "theirs")
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    after = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert loaded.model.longest == 96
    assert {name: after.get(name) for name in before} == before


def test_prompts_precede_texts(tmp_path: Path) -> None:
    peer("NomicBert", "Model", vocab_size=VOCABULARY).save_pretrained(tmp_path)
    tokenizer("bert").save(tmp_path, token_types=True)
    prompts = {"query": "search_query: ", "document": "search_document: "}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    reader = longspan.load(tmp_path, "encode")
    found = reader.encode_query("old bridge")
    assert torch.equal(torch.from_numpy(found), torch.from_numpy(reader.encode("search_query: old bridge")))
    assert not torch.allclose(torch.from_numpy(found), torch.from_numpy(reader.encode("old bridge")))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("activation_function", "gelu"),
        ("activation_function", ["swiglu"]),
        ("causal", True),
        ("mlp_fc1_bias", True),
        ("moe_every_n_layers", 2),
        ("parallel_block", True),
        ("prenorm", True),
        ("qkv_proj_bias", True),
        ("rotary_emb_fraction", 0.5),
        ("rotary_emb_interleaved", True),
        ("rotary_emb_scale_base", 512),
        ("rotary_scaling_factor", "two"),
        ("use_rms_norm", True),
    ],
)
def test_what_would_be_another_model_is_refused(tmp_path: Path, field: str, value: object) -> None:
    authors(tmp_path, **{field: value})
    with pytest.raises(InputError, match=f"`{field}` must be"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("size", "wanted"), [(16, "hidden_size / num_attention_heads"), ("8", "a whole number")]
)
def test_heads_of_another_size_are_refused(tmp_path: Path, size: object, wanted: str) -> None:
    peer("NomicBert", "Model").save_pretrained(tmp_path)
    rewritten(tmp_path, head_dim=size)
    with pytest.raises(InputError, match=f"`head_dim` must be {wanted}"):
        load_model(tmp_path)
