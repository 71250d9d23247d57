"""EmbeddingGemma computes what transformers computes, in float32 and bfloat16, and is saved alike."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError
from longspan.families.gemma3.model import Gemma3Config
from longspan.families.registry import read_config
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.rope import RopeParameters
from longspan.tasks.registry import build
from parity.peers import close, compare, output, padded, pair, peer, words

RADIUS = 4
RAW = {"model_type": "gemma3_text", "use_bidirectional_attention": True}
YARN: dict[str, Any] = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24}
SMALL: dict[str, Any] = {"vocab_size": 83, "width": 24, "heads": 3, "feed_forward": 40, "head_dim": 10}


def agree(folder: Path, n: int = 41, **changes: Any) -> TaskModel:
    """Outputs and gradients of both, on one document."""
    theirs, ours = pair(folder, "Gemma3Text", "Model", **changes)
    (ids,) = words(n)
    compare(theirs, ours, ours.backbone(ids, Layout.packed([n])), output(theirs(ids[None])))
    return ours


@pytest.mark.parametrize("n", [1, 2, RADIUS, RADIUS + 1, RADIUS + 2, 61, 96])
def test_the_backbone_agrees_at_any_length(tmp_path: Path, n: int) -> None:
    agree(tmp_path, n=n)


def test_documents_packed_end_to_end_agree_with_a_padded_batch(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "Gemma3Text", "Model")
    lengths, ids = (19, 50, 7), words(19, 50, 7)
    real = padded([torch.ones(n, dtype=torch.bool) for n in lengths], 0)
    expected = theirs(padded(ids, 0), attention_mask=real.long()).last_hidden_state[real]
    compare(theirs, ours, ours.backbone(torch.cat(ids), Layout.packed(lengths)), expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_key_value_heads": 3},
        {"attention_bias": True},
        {"hidden_activation": "silu", "rms_norm_eps": 1e-2, "query_pre_attn_scalar": 100},
        {"sliding_window": 9},
        {"num_hidden_layers": 7, "layer_types": None},
        {"num_hidden_layers": 1, "layer_types": ["full_attention"]},
        {"rope_parameters": {"full_attention": {"rope_theta": 70.0}, "sliding_attention": {}}},
        {"rope_parameters": {"full_attention": dict(YARN), "sliding_attention": {"rope_theta": 50.0}}},
    ],
    ids=str,
)
def test_options_agree(tmp_path: Path, changes: dict[str, Any]) -> None:
    agree(tmp_path, n=61, **changes)


def test_the_scale_of_embeddings_is_rounded_as_transformers_rounds_it(tmp_path: Path) -> None:
    """The root of 24 is 4.899, and 4.906 in bfloat16."""
    theirs = peer("Gemma3Text", "Model").to(torch.bfloat16)
    theirs.save_pretrained(tmp_path)
    ours = load_model(tmp_path).model
    (ids,) = words(41)
    expected = theirs.embed_tokens(ids)
    embedded = ours.backbone.get_submodule("embeddings")
    assert torch.equal(embedded(ids, Layout.packed([41])), expected)
    assert not torch.equal(theirs.embed_tokens.weight[ids] * 24**0.5, expected)
    with torch.no_grad():
        found = ours.backbone(ids, Layout.packed([41])).float()
    near = output(theirs(ids[None])).float()
    assert (found - near).norm() < 8 * torch.finfo(torch.bfloat16).eps * near.norm()


@pytest.mark.parametrize("changes", [{}, {"rope_scaling": YARN}, {"sliding_window_pattern": 2}], ids=str)
def test_old_files_are_read_as_transformers_reads_them(tmp_path: Path, changes: dict[str, Any]) -> None:
    peer("Gemma3Text", "Model", num_hidden_layers=3, layer_types=None).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    stated = json.loads(path.read_text())
    for name in ("rope_parameters", "layer_types"):
        del stated[name]
    path.write_text(json.dumps(stated | {"rope_theta": 900.0, "rope_local_base_freq": 40.0} | changes))
    theirs, ours = transformers.AutoModel.from_pretrained(tmp_path).eval(), load_model(tmp_path).model
    (ids,) = words(61)
    compare(theirs, ours, ours.backbone(ids, Layout.packed([61])), output(theirs(ids[None])))


def test_the_keys_of_a_causal_class_are_found_too(tmp_path: Path) -> None:
    theirs = peer("Gemma3Text", "Model")
    whole = transformers.Gemma3ForCausalLM(theirs.config)
    whole.model.load_state_dict(theirs.state_dict())
    whole.save_pretrained(tmp_path)
    (ids,) = words(41)
    found = load_model(tmp_path).model.backbone(ids, Layout.packed([41]))
    close(found.detach(), output(theirs(ids[None])).detach())


def test_a_model_of_ours_is_found_by_transformers(tmp_path: Path) -> None:
    more: dict[str, Any] = {"kv_heads": 3, "query_scalar": 7.0, "rope": RopeParameters(**YARN), "layers": 7}
    config = Gemma3Config(**SMALL, **more, positions=96, radius=RADIUS)
    ours = build(config, "encode").eval()
    save_model(ours, tmp_path)
    theirs, complaints = transformers.AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(complaints.values()), complaints
    (ids,) = words(61)
    close(ours.backbone(ids, Layout.packed([61])).detach(), output(theirs.eval()(ids[None])).detach())
    assert load_model(tmp_path).model.config == config


@pytest.mark.parametrize(
    "changes", [{"rope": RopeParameters(rope_type="ntk", factor=2.0)}, {"query_scalar": 7.5}], ids=str
)
def test_what_transformers_has_no_words_for_is_a_type_of_our_own(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    config = Gemma3Config(**SMALL, layers=2, **changes)
    ours = build(config, "encode").eval()
    save_model(ours, tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.config["model_type"] == "longspan-gemma3"
    assert loaded.model.config == config
    (ids,) = words(50)
    close(loaded.model(ids, Layout.packed([50])).detach(), ours(ids, Layout.packed([50])).detach())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"use_bidirectional_attention": False}, "must be true, but is False. .* a causal Gemma writes"),
        ({"use_bidirectional_attention": None}, "must be true, but is None"),
        ({"use_bidirectional_attention": "yes"}, "must be true or false"),
        ({"attn_logit_softcapping": 50.0}, "`attn_logit_softcapping` must be null"),
        ({"sliding_window": None}, "`sliding_window` must be a whole number"),
        ({"sliding_window": 1}, "`sliding_window` must be at least 2"),
        ({"num_key_value_heads": 3}, "`num_key_value_heads` must be a divisor of the 8 heads"),
        ({"query_pre_attn_scalar": 0}, "`query_pre_attn_scalar` must be from"),
        ({"layer_types": ["full_attention"]}, "`layer_types` must be one for each of the 26 layers"),
        ({"layer_types": 3}, "`layer_types` must be a list"),
        ({"sliding_window_pattern": -1}, "`sliding_window_pattern` must be at least 1"),
    ],
)
def test_a_config_that_cannot_be_read_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_config(RAW | changes)


def test_a_gemma_that_does_not_say_is_causal() -> None:
    with pytest.raises(InputError, match="`use_bidirectional_attention` must be true, but is False"):
        read_config({"model_type": "gemma3_text"})
