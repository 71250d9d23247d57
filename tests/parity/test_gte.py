"""GTE by the files of its authors: model type "new", NTK scaling, perhaps no token types."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError
from longspan.layout import Layout
from parity.peers import HEADS, close, compare, output, pair, peer, rewritten, words

AUTHORS: dict[str, Any] = {
    "model_type": "new",
    "architectures": ["NewModel"],
    "auto_map": {"AutoModel": "modeling.NewModel"},
    "layer_norm_type": "layer_norm",
    "logn_attention_clip1": False,
    "logn_attention_scale": False,
    "pack_qkv": True,
    "position_embedding_type": "rope",
    "rope_scaling": None,
    "rope_theta": 700.0,
    "unpad_inputs": "false",
    "use_memory_efficient_attention": "false",
}


def authors(folder: Path, head: str = "Model", **changes: Any) -> Any:
    """A folder of the authors' code, and transformers' model of the same weights."""
    theirs = peer("Gte", head, rope_parameters={"rope_type": "default", "rope_theta": 700.0})
    theirs.save_pretrained(folder)
    stated = AUTHORS | {"architectures": [f"New{head}"]} | changes
    rewritten(folder, "rope_parameters", **stated)
    path = folder / "model.safetensors"
    save_file({name.replace("gte.", "new."): one for name, one in load_file(path).items()}, path)
    return theirs


def ntk(theirs: Any, factor: float) -> None:
    """Give transformers' model the frequencies that the authors' code has."""
    size = theirs.config.hidden_size // theirs.config.num_attention_heads
    base = 1.0 / (700.0 * factor) ** (torch.arange(0, size, 2).float() / size)
    theirs.rotary_emb.inv_freq = base / factor ** (2 / size)


@pytest.mark.parametrize("head", HEADS[:4])
def test_files_of_the_authors_code_give_the_same_model(tmp_path: Path, head: str) -> None:
    theirs = authors(tmp_path, head)
    loaded = load_model(tmp_path)
    assert not loaded.report
    (ids,) = words(41)
    run = loaded.model.backbone if head == "Model" else loaded.model
    with torch.no_grad():
        found, expected = run(ids, Layout.packed([41])), output(theirs(ids[None]))
    close(found[0] if expected.dim() == 1 else found, expected)


@pytest.mark.parametrize("factor", [2.0, 8.0])
def test_their_scaling_is_read_and_saved_in_transformers_words(tmp_path: Path, factor: float) -> None:
    theirs = authors(tmp_path / "authors", rope_scaling={"type": "ntk", "factor": factor})
    ntk(theirs, factor)
    loaded = load_model(tmp_path / "authors")
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    saved = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert saved["model_type"] == "gte"
    assert not {"auto_map", "rope_scaling", "rope_theta", "position_embedding_type"} & {*saved}
    native = transformers.GteModel.from_pretrained(tmp_path / "ours").eval()
    (ids,) = words(90)
    with torch.no_grad():
        expected = output(theirs(ids[None]))
        close(loaded.model.backbone(ids, Layout.packed([90])), expected)
        close(output(native(ids[None])), expected)


@pytest.mark.parametrize("head", ["Model", "ForMaskedLM"])
def test_a_model_without_token_types_agrees(tmp_path: Path, head: str) -> None:
    theirs, ours = pair(tmp_path, "Gte", head, type_vocab_size=0)
    (ids,) = words(33)
    run = ours.backbone if head == "Model" else ours
    compare(theirs, ours, run(ids, Layout.packed([33])), output(theirs(ids[None])))


def test_the_head_of_masked_words_keeps_its_gelu_whatever_the_body_has(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "Gte", "ForMaskedLM", hidden_act="relu")
    (ids,) = words(21)
    compare(theirs, ours, ours(ids, Layout.packed([21])), output(theirs(ids[None])))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("layer_norm_type", "rms_norm"),
        ("logn_attention_clip1", True),
        ("logn_attention_scale", True),
        ("position_embedding_type", "absolute"),
        ("rope_scaling", {"type": "ntk", "factor": 2.0, "mixed_b": 0.6}),
        ("rope_scaling", {"type": "yarn", "factor": 2.0}),
        ("rope_scaling", "ntk"),
    ],
)
def test_what_would_be_another_model_is_refused(tmp_path: Path, field: str, value: object) -> None:
    authors(tmp_path, "Model", **{field: value})
    with pytest.raises(InputError, match=f"`{field}` must be"):
        load_model(tmp_path)
