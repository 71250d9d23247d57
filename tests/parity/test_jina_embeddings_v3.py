"""Jina embeddings v3 by the files of its authors: one adapter of several is merged into the weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

import longspan
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError
from longspan.layout import Layout
from parity.peers import close, output, peer, rewritten, words
from unit.tasks.tiny import CORPUS, VOCABULARY, tokenizer

ADAPTERS = ["retrieval.query", "retrieval.passage", "separation"]
RANK, ALPHA = 2, 3
AUTHORS: dict[str, Any] = {
    "model_type": "xlm-roberta",
    "architectures": ["XLMRobertaModel"],
    "auto_map": {"AutoModel": "modeling_lora.XLMRobertaLoRA"},
    "lora_adaptations": ADAPTERS,
    "lora_alpha": ALPHA,
    "lora_dropout_p": 0.0,
    "lora_rank": RANK,
    "position_embedding_type": "rotary",
    "rotary_emb_base": 700.0,
    "use_flash_attn": True,
}


def authors(folder: Path, adapters: list[str] | None = None, **changes: Any) -> dict[str, dict[str, Tensor]]:
    """A folder with adapters of every matrix, and the merged weights of each, by the names of the file."""
    names = ADAPTERS if adapters is None else adapters
    theirs = peer("JinaEmbeddingsV3", "Model", vocab_size=VOCABULARY, rope_parameters=rope())
    theirs.save_pretrained(folder)
    rewritten(folder, "rope_parameters", **AUTHORS | {"lora_adaptations": names} | changes)
    plain = load_file(folder / "model.safetensors")
    merged: dict[str, dict[str, Tensor]] = {name: dict(plain) for name in names} | {"none": dict(plain)}
    stored: dict[str, Tensor] = {}
    source = torch.Generator().manual_seed(7)
    for name, weight in plain.items():
        if weight.dim() < 2:
            stored[f"roberta.{name}"] = weight
            continue
        path = f"roberta.{name.removesuffix('.weight')}.parametrizations.weight"
        rows, columns = weight.shape
        left = torch.randn(len(names), rows, RANK, generator=source) / 4
        right = torch.randn(len(names), RANK, columns, generator=source) / 4
        first, last = (left, right) if "embeddings" in name else (right, left)
        stored |= {f"{path}.original": weight, f"{path}.0.lora_A": first, f"{path}.0.lora_B": last}
        for number, adapter in enumerate(names):
            merged[adapter][name] = weight + (left[number] @ right[number]) * (ALPHA / RANK)
    save_file(stored, folder / "model.safetensors")
    return merged


def rope() -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": 700.0}


@pytest.mark.parametrize("adapter", [*ADAPTERS, "none"])
def test_the_adapter_that_is_named_is_merged(tmp_path: Path, adapter: str) -> None:
    wanted = authors(tmp_path / "authors")[adapter]
    loaded = load_model(tmp_path / "authors", adapter=adapter)
    assert not loaded.report
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    found = load_file(tmp_path / "ours" / "model.safetensors")
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        close(found[name], tensor, name)
    theirs = transformers.JinaEmbeddingsV3Model.from_pretrained(tmp_path / "ours").eval()
    (ids,) = words(61)
    with torch.no_grad():
        close(loaded.model.backbone(ids, Layout.packed([61])), output(theirs(ids[None])))


def test_what_is_saved_is_transformers_own_type_without_adapters(tmp_path: Path) -> None:
    authors(tmp_path / "authors")
    loaded = load_model(tmp_path / "authors", adapter="separation")
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    saved = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert saved["model_type"] == "jina_embeddings_v3"
    assert saved["architectures"] == ["JinaEmbeddingsV3Model"]
    assert saved["rope_parameters"] == rope()
    assert not {"auto_map", "position_embedding_type", "rotary_emb_base"} & {*saved}
    assert not [name for name in saved if name.startswith("lora_")]
    with pytest.raises(InputError, match="`adapter` must be None for a file without adapters"):
        load_model(tmp_path / "ours", adapter="separation")


def test_one_of_several_adapters_has_to_be_named(tmp_path: Path) -> None:
    authors(tmp_path)
    listed = "one of retrieval.query, retrieval.passage, separation, none"
    with pytest.raises(InputError, match=f"`adapter` must be {listed}, but is None. Say which"):
        load_model(tmp_path)
    with pytest.raises(InputError, match=f"`adapter` must be {listed}, but is 'classification'"):
        load_model(tmp_path, adapter="classification")


def test_a_single_adapter_needs_no_name(tmp_path: Path) -> None:
    wanted = authors(tmp_path, ["separation"])["separation"]
    words_table = load_model(tmp_path).model.backbone.word_embeddings.weight
    close(words_table.detach(), wanted["embeddings.word_embeddings.weight"])


def test_a_reader_takes_the_name_and_its_modules(tmp_path: Path) -> None:
    authors(tmp_path)
    tokenizer("longformer").save(tmp_path, token_types=False)
    theirs = "sentence_transformers.models"
    kinds = ("custom_st.Transformer", f"{theirs}.Pooling", f"{theirs}.Normalize")
    listed = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind.rpartition('.')[2]}" if i else "", "type": kind}
        for i, kind in enumerate(kinds)
    ]
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    (tmp_path / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 24, "pooling_mode_mean_tokens": True}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    query, passage = (longspan.load(tmp_path, adapter=name).encode(CORPUS[0]) for name in ADAPTERS[:2])
    np.testing.assert_allclose(np.linalg.norm(query), 1.0, rtol=1e-5)
    assert not np.allclose(query, passage, atol=1e-3)


def test_an_adapter_of_another_family_is_refused(tmp_path: Path) -> None:
    peer("Bert", "Model").save_pretrained(tmp_path)
    with pytest.raises(InputError, match="`adapter` must be None for Bert, or the folder of an adapter"):
        load_model(tmp_path, adapter="separation")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lora_adaptations": "retrieval.query"}, "`lora_adaptations` must be the names of the adapters"),
        ({"lora_adaptations": ADAPTERS[:2]}, "changed by adapters of the shapes"),
        ({"lora_rank": 0}, "`lora_rank` must be"),
        ({"lora_alpha": "one"}, "`lora_alpha` must be"),
    ],
)
def test_adapters_that_do_not_fit_are_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    authors(tmp_path)
    rewritten(tmp_path, **fields)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path, adapter="retrieval.query")
