"""Jina BERT, which transformers does not have: written out in float64 from its description, file by file."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError
from longspan.families.jina_bert.model import JinaBertConfig
from longspan.families.registry import read_config
from longspan.layout import Layout
from longspan.nn.alibi import slopes
from parity.peers import close, peer, words

WIDTH, LAYERS, INNER = 24, 2, 40
QKV = ("query", "key", "value")
CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "architectures": ["JinaBertModel"],
    "auto_map": {"AutoModel": "jina-bert-implementation--modeling_bert.JinaBertModel"},
    "attention_probs_dropout_prob": 0.0,
    "emb_pooler": "mean",
    "feed_forward_type": "geglu",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 300,
    "num_attention_heads": 3,
    "num_hidden_layers": LAYERS,
    "pad_token_id": 0,
    "position_embedding_type": "alibi",
    "type_vocab_size": 2,
    "vocab_size": 83,
}


def weights(prefix: str = "") -> dict[str, Tensor]:
    """Every tensor of a file, by its authors' names."""
    source = torch.Generator().manual_seed(0)
    sizes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (83, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm": (WIDTH,),
    }
    for layer in range(LAYERS):
        place = f"encoder.layer.{layer}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            sizes |= {f"{place}.attention.{name}.weight": (WIDTH, WIDTH)}
            sizes |= {f"{place}.attention.{name}.bias": (WIDTH,)}
        sizes |= {f"{place}.attention.output.LayerNorm": (WIDTH,), f"{place}.mlp.layernorm": (WIDTH,)}
        sizes |= {f"{place}.mlp.gated_layers.weight": (2 * INNER, WIDTH)}
        sizes |= {f"{place}.mlp.wo.weight": (WIDTH, INNER), f"{place}.mlp.wo.bias": (WIDTH,)}
    made: dict[str, Tensor] = {}
    for name, size in sizes.items():
        if name.endswith(("LayerNorm", "layernorm")):
            made[f"{prefix}{name}.weight"] = 1 + 0.2 * torch.randn(size, generator=source)
            made[f"{prefix}{name}.bias"] = 0.2 * torch.randn(size, generator=source)
        else:
            made[prefix + name] = 0.3 * torch.randn(size, generator=source)
    return made


def folder(place: Path, *, prefix: str = "", more: dict[str, Tensor] | None = None, **changes: Any) -> Path:
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text(json.dumps(CONFIG | changes))
    save_file(weights(prefix) | (more or {}), place / "model.safetensors")
    return place


def slope(head: int, heads: int) -> float:
    """Press et al.: a geometric row for a power of two; else its rest from every second of twice as many."""
    if math.log2(heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return float(start ** (head + 1))
    whole = 2 ** math.floor(math.log2(heads))
    return slope(head, whole) if head < whole else slope(2 * (head - whole), 2 * whole)


def written_out(w: dict[str, Tensor], ids: Tensor, heads: int = 3) -> Tensor:
    """The whole model on one document, dense."""
    n, size = len(ids), WIDTH // heads

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (WIDTH,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-12)

    def dense(x: Tensor, name: str) -> Tensor:
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0.0)

    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    distance = (torch.arange(n)[:, None] - torch.arange(n)[None, :]).abs()
    for layer in range(LAYERS):
        place = f"encoder.layer.{layer}"
        q, k, v = (dense(x, f"{place}.attention.self.{name}").view(n, heads, size) for name in QKV)
        outs = []
        for head in range(heads):
            score = q[:, head] @ k[:, head].T / math.sqrt(size) - slope(head, heads) * distance
            outs.append(score.softmax(-1) @ v[:, head])
        y = dense(torch.cat(outs, 1), f"{place}.attention.output.dense")
        x = norm(x + y, f"{place}.attention.output.LayerNorm")
        gate, value = dense(x, f"{place}.mlp.gated_layers").split(INNER, 1)
        x = norm(x + dense(F.gelu(gate) * value, f"{place}.mlp.wo"), f"{place}.mlp.layernorm")
    return x


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 8, 12, 16, 20])
def test_slopes_are_those_of_the_paper(heads: int) -> None:
    np.testing.assert_allclose(slopes(heads), [slope(head, heads) for head in range(heads)], rtol=1e-12)


@pytest.mark.parametrize("heads", [1, 2, 3, 6])
@pytest.mark.parametrize("n", [1, 2, 41, 131])
def test_the_body_and_its_gradients_agree(tmp_path: Path, n: int, heads: int) -> None:
    loaded = load_model(folder(tmp_path, num_attention_heads=heads))
    assert not loaded.report
    assert not loaded.notes
    wanted = {name: tensor.double().requires_grad_() for name, tensor in weights().items()}
    (ids,) = words(n)
    expected = written_out(wanted, ids, heads)
    found = loaded.model.backbone(ids, Layout.packed([n]))
    close(found.detach(), expected.detach().float())
    weigh = torch.randn(expected.shape, generator=torch.Generator().manual_seed(2))
    (expected * weigh).sum().backward()
    (found * weigh).sum().backward()
    qkv = loaded.model.get_parameter("backbone.layers.1.attention.qkv.weight").grad
    parts = [wanted[f"encoder.layer.1.attention.self.{name}.weight"].grad for name in QKV]
    assert qkv is not None
    close(qkv, torch.cat([part for part in parts if part is not None]).float(), "qkv")
    pairs = {
        "embeddings.words.weight": "embeddings.word_embeddings.weight",
        "layers.0.feed_forward.up.weight": "encoder.layer.0.mlp.gated_layers.weight",
        "layers.0.feed_forward.down.bias": "encoder.layer.0.mlp.wo.bias",
        "layers.1.feed_forward_norm.weight": "encoder.layer.1.mlp.layernorm.weight",
        "layers.1.attention.out.weight": "encoder.layer.1.attention.output.dense.weight",
    }
    for ours, theirs in pairs.items():
        gradient, wish = loaded.model.get_parameter(f"backbone.{ours}").grad, wanted[theirs].grad
        assert gradient is not None
        assert wish is not None
        close(gradient, wish.float(), ours)


def test_documents_may_be_longer_than_the_config_says(tmp_path: Path) -> None:
    model = load_model(folder(tmp_path)).model.backbone
    (ids,) = words(700)
    with torch.no_grad():
        expected = written_out({name: one.double() for name, one in weights().items()}, ids)
        close(model(ids, Layout.packed([700])), expected.float())


def test_mates_in_a_batch_change_nothing_and_natively_no_bit(tmp_path: Path, engine: str) -> None:
    model = load_model(folder(tmp_path)).model.backbone
    lengths = [7, 211, 64, 1]
    ids = words(*lengths)
    with torch.no_grad():
        together = model(torch.cat(ids), Layout.packed(lengths)).split(lengths)
        for one, found in zip(ids, together, strict=True):
            alone = model(one, Layout.packed([len(one)]))
            close(found, alone)
            assert engine != "native" or torch.equal(found, alone)


@pytest.mark.parametrize("task", ["fill", "classify", "tag", "answer", "choose", "encode"])
def test_files_with_the_prefix_of_bert_serve_every_task(tmp_path: Path, task: str) -> None:
    loaded = load_model(
        folder(tmp_path / "theirs", prefix="bert.", architectures=["JinaBertForMaskedLM"]), task
    )
    (ids,) = words(33)
    with torch.no_grad():
        expected = loaded.model(ids, Layout.packed([33]))
        save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
        again = load_model(tmp_path / "ours", task)
        close(again.model(ids, Layout.packed([33])), expected)
    assert not again.report


def test_what_is_saved_is_a_type_of_our_own_that_no_one_mistakes(tmp_path: Path) -> None:
    loaded = load_model(folder(tmp_path / "theirs"))
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    saved = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert saved["model_type"] == "longspan-jina-bert"
    assert not {"auto_map", "position_embedding_type", "feed_forward_type"} & {*saved}
    again = load_model(tmp_path / "ours").model
    for (name, one), (_, other) in zip(
        loaded.model.named_parameters(), again.named_parameters(), strict=True
    ):
        assert torch.equal(one, other), name


@pytest.mark.parametrize(
    "changes",
    [
        {"feed_forward_type": "original"},
        {"feed_forward_type": "reglu"},
        {"hidden_act": "relu"},
        {"position_embedding_type": "absolute"},
        {"auto_map": {"AutoModel": "jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel"}},
    ],
    ids=str,
)
def test_variants_are_refused_by_name(tmp_path: Path, changes: dict[str, Any]) -> None:
    (name,) = changes
    with pytest.raises(InputError, match=f"`{name}` must be"):
        load_model(folder(tmp_path, **changes))


@pytest.mark.parametrize("field", ["position_embedding_type", "feed_forward_type"])
def test_neither_field_alone_is_read_as_bert(tmp_path: Path, field: str) -> None:
    theirs = peer("Bert", "Model")
    raw = theirs.config.to_dict() | {"model_type": "bert", "architectures": ["BertModel"]}
    with pytest.raises(InputError, match="Longspan has no such model"):
        read_config({**raw, field: CONFIG[field]})
    family, config = read_config(CONFIG)
    assert family.name == "JinaBert"
    assert isinstance(config, JinaBertConfig)
