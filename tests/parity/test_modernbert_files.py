"""ModernBERT's files: read as transformers reads them, and written so that transformers reads the same."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError
from longspan.families.modernbert.model import ModernBertConfig
from longspan.families.registry import read_config
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.rope import RopeParameters
from longspan.tasks.registry import build, task_of
from parity.peers import HEADS, close, compare, hidden, output, peer, words

RADIUS = 4
YARN: dict[str, Any] = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24}
SMALL: dict[str, Any] = {"vocab_size": 83, "width": 24, "heads": 3, "feed_forward": 40}
OLD: dict[str, Any] = {
    "model_type": "modernbert",
    "architectures": ["ModernBertModel"],
    "vocab_size": 83,
    "hidden_size": 24,
    "num_hidden_layers": 5,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 96,
    "pad_token_id": 0,
    "local_attention": 2 * RADIUS,
    "global_attn_every_n_layers": 2,
    "global_rope_theta": 80_000.0,
    "local_rope_theta": 500.0,
    "layer_norm_eps": 1e-3,
    "position_embedding_type": "absolute",
    "reference_compile": False,
    "gradient_checkpointing": False,
}
"""The words of its first release."""


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def old_file(folder: Path, **changes: Any) -> tuple[Any, TaskModel]:
    """A model whose config.json has the words of the first release, as both read it."""
    theirs = peer("ModernBert", "Model", num_hidden_layers=5)
    theirs.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(OLD | changes))
    loaded = load_model(folder)
    assert not loaded.report
    return transformers.AutoModel.from_pretrained(folder).eval(), loaded.model


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm_eps": 1e-2},
        {"rope_scaling": dict(YARN)},
        {"rope_scaling": {"type": "yarn", **YARN}},
        {"global_rope_theta": 160_000.0, "local_rope_theta": 160_000.0},
        {"layer_types": ["full_attention"] + ["sliding_attention"] * 4},
    ],
    ids=str,
)
def test_files_of_its_first_release_are_read_as_transformers_reads_them(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    theirs, ours = old_file(tmp_path / "old", **changes)
    (ids,) = words(61)
    compare(theirs, ours, ours.backbone(ids, Layout.packed([61])), output(theirs(ids[None])))
    save_model(ours, tmp_path / "new", extra=json.loads((tmp_path / "old" / "config.json").read_text()))
    again = transformers.AutoModel.from_pretrained(tmp_path / "new").eval()
    assert torch.equal(output(again(ids[None])), output(theirs(ids[None])))
    stated = json.loads((tmp_path / "new" / "config.json").read_text())
    assert not {"global_rope_theta", "rope_scaling", "layer_norm_eps"} & stated.keys()


@pytest.mark.parametrize("head", HEADS)
def test_a_model_of_ours_is_found_by_transformers(tmp_path: Path, head: str) -> None:
    ropes: dict[str, Any] = {
        "rope": RopeParameters(**YARN),
        "local_rope": RopeParameters(rope_type="linear", factor=2.0),
    }
    config = ModernBertConfig(
        **SMALL, layers=3, **ropes, positions=96, radius=RADIUS, classifier_pooling="mean"
    )
    ours = build(config, task_of(head).name, labels=2).eval()
    save_model(ours, tmp_path)
    kind = getattr(transformers, f"ModernBert{head}")
    theirs, complaints = kind.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(complaints.values()), complaints
    (ids,) = words(61)
    if head == "ForMultipleChoice":
        expected = theirs.eval()(ids[None, None], attention_mask=torch.ones(1, 1, 61)).logits[0]
    else:
        expected = output(theirs.eval()(ids[None]))
    given = hidden(ours)(ids, Layout.packed([61]))
    close((given[0] if expected.dim() == 1 else given).detach(), expected.detach())
    _, read = read_config(json.loads((tmp_path / "config.json").read_text()))
    assert read == config


def test_a_longer_document_than_the_scaling_begins_at_is_kept_in_a_field_that_transformers_passes_over(
    tmp_path: Path,
) -> None:
    scaled = RopeParameters(rope_type="dynamic", factor=2.0, original_max_position_embeddings=24)
    config = ModernBertConfig(**SMALL, layers=1, rope=scaled, local_rope=scaled, positions=96)
    ours = build(config, "encode").eval()
    save_model(ours, tmp_path)
    stated = json.loads((tmp_path / "config.json").read_text())
    assert (stated["max_position_embeddings"], stated["max_scaled_position_embeddings"]) == (24, 96)
    assert load_model(tmp_path).model.config == config
    theirs, (ids,) = transformers.AutoModel.from_pretrained(tmp_path).eval(), words(90)
    given = ours.backbone(ids, Layout.packed([90]))
    close(given.detach(), output(theirs(ids[None])).detach())


NTK = RopeParameters(rope_type="ntk", factor=4.0, rope_theta=500.0)
APART = (
    RopeParameters(rope_type="dynamic", factor=2.0, original_max_position_embeddings=24),
    RopeParameters(rope_type="dynamic", factor=2.0, original_max_position_embeddings=25),
)


@pytest.mark.parametrize("ropes", [(NTK, NTK), APART, (RopeParameters(**YARN, truncate=False), NTK)], ids=str)
@pytest.mark.parametrize("task", ["encode", "fill", "classify"])
def test_angles_that_transformers_has_no_words_for_are_a_type_of_our_own(
    tmp_path: Path, ropes: tuple[RopeParameters, RopeParameters], task: str
) -> None:
    config = ModernBertConfig(
        **SMALL,
        layers=2,
        rope=ropes[0],
        local_rope=ropes[1],
        positions=96,
        layer_types=("full_attention",) * 2,
    )
    ours = build(config, task, labels=2).eval()
    save_model(ours, tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.config["model_type"] == "longspan-modernbert"
    assert loaded.model.config == config
    (ids,) = words(50)
    close(loaded.model(ids, Layout.packed([50])).detach(), ours(ids, Layout.packed([50])).detach())
    first = load_file(tmp_path / "model.safetensors")
    save_model(loaded.model, tmp_path / "again", extra=loaded.config)
    assert (tmp_path / "again" / "config.json").read_text() == (tmp_path / "config.json").read_text()
    second = load_file(tmp_path / "again" / "model.safetensors")
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


@pytest.mark.parametrize(
    ("rope", "message"),
    [
        (3, "`rope` must be the fields of a Longspan model, but is 3"),
        ({"speed": 3}, "`rope.speed` must be one of rope_theta"),
        ({"rope_type": 3}, "`rope_type` must be a word"),
        ({"truncate": 1}, "`truncate` must be true or false"),
        ({"original_max_position_embeddings": 0.5}, "must be a whole number"),
        ({"attention_factor": "1"}, "`attention_factor` must be a number"),
        ({"rope_theta": [3]}, "`rope_theta` must be a number"),
    ],
)
def test_our_own_files_have_no_other_fields(tmp_path: Path, rope: object, message: str) -> None:
    save_model(build(ModernBertConfig(**SMALL, layers=1, rope=NTK), "encode"), tmp_path)
    path = tmp_path / "config.json"
    stated = json.loads(path.read_text())
    stated["encoder"]["rope"] = rope
    path.write_text(json.dumps(stated))
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_types": ["full_attention"]}, "`layer_types` must be one for each of the 5 layers"),
        ({"layer_types": ["causal"] * 5}, "`layer_types` must be one of full_attention, sliding_attention"),
        ({"layer_types": [["full_attention"]] * 5}, "`layer_types` must be one of"),
        ({"layer_types": "full_attention"}, "`layer_types` must be a list"),
        ({"local_attention": 1}, "`local_attention` must be at least 2"),
        ({"local_attention": "wide"}, "`local_attention` must be a whole number"),
        ({"global_attn_every_n_layers": -1}, "`global_attn_every_n_layers` must be at least 1"),
        ({"global_rope_theta": "far"}, "`rope_theta` must be a number"),
        ({"classifier_pooling": "max"}, "`classifier_pooling` must be one of cls, mean"),
        ({"classifier_pooling": ["cls"]}, "`classifier_pooling` must be a word"),
        ({"hidden_activation": 3}, "`hidden_activation` must be a word"),
        ({"hidden_activation": "wavy"}, "activation"),
        ({"norm_bias": 1}, "`norm_bias` must be true or false"),
        ({"num_attention_heads": 8}, "`hidden_size` must be an even number for each head"),
        ({"pad_token_id": 83}, "`pad_token_id` must be less than the vocabulary"),
        ({"rope_parameters": {"rope_theta": 5.0}}, "`rope_parameters` must be fields of full_attention and"),
        ({"rope_parameters": {"full_attention": 5}}, "must be fields of rotary positions"),
        ({"rope_parameters": {"full_attention": {"base": 5}}}, "full_attention.base` must be one of"),
        ({"rope_parameters": {"full_attention": {"rope_type": "longrope"}}}, "`rope_type` must be one of"),
        ({"rope_parameters": {"full_attention": {"rope_type": "linear"}}}, "factor` must be stated where"),
        ({"rope_parameters": {"full_attention": {"partial_rotary_factor": 0.5}}}, "must be 1.0"),
        ({"rope_parameters": {"full_attention": {**YARN, "truncate": False}}}, "`truncate` must be true"),
        ({"rope_scaling": {"type": "yarn", "factor": 2.0}}, "`rope_scaling` must be one with a rope_type"),
        ({"rope_scaling": 4}, "`rope_scaling` must be fields of rotary positions"),
        ({"max_scaled_position_embeddings": -4}, "must be at least 1"),
    ],
)
def test_a_config_that_cannot_be_read_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_config(OLD | changes)
