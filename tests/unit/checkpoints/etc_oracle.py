"""ETC by its definition, in float64, from arrays by their names in TensorFlow: dense, slow, none of ours."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MODEL = "etc_document_bert"


def variables(config: Mapping[str, Any], seed: int = 0) -> dict[str, Array]:
    """Random weights in float64 by the names and in the shapes that etcmodel gives them."""
    draw = np.random.default_rng(seed)
    c, inner, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    narrow, labels = config.get("embedding_size") or c, config["relative_vocab_size"]
    shapes: dict[str, tuple[int, ...]] = {
        f"{MODEL}/token_emb_lookup/embedding_table": (config["vocab_size"], narrow),
        f"{MODEL}/segment_emb_lookup/embedding_table": (config["segment_vocab_size"], c),
    }
    if narrow != c:
        shapes |= _dense(f"{MODEL}/token_emb_lookup/projection", narrow, c)
    if rows := config.get("max_absolute_position_embeddings"):
        shapes |= {f"position_emb_lookup_{side}/embedding_table": (rows, c) for side in ("long", "global")}
    norms = [f"{MODEL}/{side}_emb_layer_norm" for side in ("long", "global")]
    for layer in range(config["num_hidden_layers"]):
        block = f"{MODEL}/global_local_transformer_layers/fused_att_layer_{layer}"
        fused = f"{block}/fused_global_local_att"
        for name in {*_projections(config).values()}:
            shapes |= _dense(f"{fused}/{name}_projection/linear", c, c)
        for name in {"long", "long" if config.get("share_att_output_projection") else "global"}:
            shapes |= _dense(f"{fused}/{name}_output_projection", c, c)
        for name in ("long_qkv_attention/qkv_relative_attention", "global_qkv_attention"):
            shapes[f"{fused}/{name}/relative_emb_table"] = (labels, heads, c // heads)
            shapes[f"{fused}/{name}/relative_bias_table"] = (labels, heads)
        norms += [f"{block}/layer_norm_0", f"{block}/layer_norm_1"]
        for name in {*_feed_forward(config)}:
            place = f"{MODEL}/global_local_transformer_layers/{name}_{layer}"
            shapes |= _dense(f"{place}/dense_layers/layer_0", c, inner)
            shapes |= _dense(f"{place}/dense_layers/layer_1", inner, c)
            norms.append(f"{place}/layer_norm")
    shapes |= {f"{norm}/{leaf}": (c,) for norm in norms for leaf in ("gamma", "beta")}
    return {
        name: draw.normal(float(name.endswith("gamma")), 0.5, shape) for name, shape in sorted(shapes.items())
    }


def streams(
    found: Mapping[str, Array], config: Mapping[str, Any], ids: Array, top_ids: Array, parent: Array
) -> tuple[Array, Array]:
    """The last hidden states of one text, whose token i belongs to global token parent[i]."""
    n, g = len(ids), len(top_ids)
    x = _embedded(found, config, ids, "long", 1), _embedded(found, config, top_ids, "global", 0)
    labels, seen = _pairs(config, n, g, parent)
    for layer in range(config["num_hidden_layers"]):
        block = f"{MODEL}/global_local_transformer_layers/fused_att_layer_{layer}"
        contexts = [_attended(found, config, block, x, side, labels[side], seen[side]) for side in (0, 1)]
        x = tuple(_norm(found, f"{block}/layer_norm_{side}", x[side] + contexts[side]) for side in (0, 1))  # type: ignore[assignment]
        for side, name in enumerate(_feed_forward(config)):
            place = f"{MODEL}/global_local_transformer_layers/{name}_{layer}"
            inner = _gelu(_linear(found, f"{place}/dense_layers/layer_0", x[side]))
            y = x[side] + _linear(found, f"{place}/dense_layers/layer_1", inner)
            x = (*x[:side], _norm(found, f"{place}/layer_norm", y), *x[side + 1 :])  # type: ignore[assignment]
    return x


def _attended(
    found: Mapping[str, Array],
    config: Mapping[str, Any],
    block: str,
    x: tuple[Array, Array],
    side: int,
    labels: Array,
    seen: Array,
) -> Array:
    """One stream's rows after one softmax over the keys of both, long first."""
    fused, heads, names = (
        f"{block}/fused_global_local_att",
        config["num_attention_heads"],
        _projections(config),
    )
    own = "long" if side == 0 else "global"

    def projected(name: str, rows: Array) -> Array:
        return _linear(found, f"{fused}/{names[name]}_projection/linear", rows).reshape(len(rows), heads, -1)

    q = projected(f"{own}_query", x[side])
    k, v = (
        np.concatenate(
            [projected(f"{own[0]}2{other}_{kind}", rows) for other, rows in zip("lg", x, strict=True)]
        )
        for kind in ("key", "value")
    )
    table = f"{fused}/{('long_qkv_attention/qkv_relative_attention', 'global_qkv_attention')[side]}"
    told = np.einsum("qhd,rhd->qrh", q, found[f"{table}/relative_emb_table"])
    told = told + found[f"{table}/relative_bias_table"]
    scores = np.einsum("qhd,khd->qkh", q, k) + np.take_along_axis(told, labels[..., None], 1)
    scores = np.where(seen[..., None], scores / np.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    context = np.einsum("qkh,khd->qhd", weights / weights.sum(1, keepdims=True), v)
    out = "long" if config.get("share_att_output_projection") else own
    return _linear(found, f"{fused}/{out}_output_projection", context.reshape(len(q), -1))


def _pairs(config: Mapping[str, Any], n: int, g: int, parent: Array) -> tuple[tuple[Array, Array], ...]:
    """Labels of pairs and which there are, for the queries of each stream: keys long first, then global."""
    far = config["relative_pos_max_distance"]
    distances = (np.arange(size)[None] - np.arange(size)[:, None] for size in (n, g))
    near, top = (np.where(d >= 0, np.minimum(d, far), far + np.minimum(-d, far)) for d in distances)
    belongs = parent[:, None] == np.arange(g)[None]
    across = 2 * far + 1 + belongs
    window = np.abs(np.arange(n)[None] - np.arange(n)[:, None]) <= config["local_radius"]
    l2g = belongs if config.get("use_hard_l2g_mask") else np.ones((n, g), bool)
    g2l = belongs.T if config.get("use_hard_g2l_mask") else np.ones((g, n), bool)
    labels = np.concatenate([near, across], 1), np.concatenate([across.T, top], 1)
    return labels, (np.concatenate([window, l2g], 1), np.concatenate([g2l, np.ones((g, g), bool)], 1))


def _embedded(
    found: Mapping[str, Array], config: Mapping[str, Any], ids: Array, side: str, kind: int
) -> Array:
    x = found[f"{MODEL}/token_emb_lookup/embedding_table"][ids]
    if f"{MODEL}/token_emb_lookup/projection/kernel" in found:
        x = _linear(found, f"{MODEL}/token_emb_lookup/projection", x)
    x = x + found[f"{MODEL}/segment_emb_lookup/embedding_table"][kind]
    if config.get("max_absolute_position_embeddings"):
        x = x + found[f"position_emb_lookup_{side}/embedding_table"][: len(ids)]
    return _norm(found, f"{MODEL}/{side}_emb_layer_norm", x)


def _projections(config: Mapping[str, Any]) -> dict[str, str]:
    """Each use, and the variables it reads."""
    names = [f"{side}_query" for side in ("long", "global")]
    names += [f"{a}2{b}_{kind}" for a in "lg" for b in "lg" for kind in ("key", "value")]
    used = {name: name for name in names}
    if config.get("share_qkv_projections", True):
        return {name: "long_query" if "query" in name else f"l2l_{name.split('_')[1]}" for name in names}
    if config.get("share_kv_projections"):
        return used | {name: f"{name[0]}2{name[0]}{name[3:]}" for name in names if name[1] == "2"}
    return used


def _feed_forward(config: Mapping[str, Any]) -> tuple[str, str]:
    shared = config.get("share_feed_forward_params", True)
    return ("feed_forward_layer",) * 2 if shared else ("long_feed_forward_layer", "global_feed_forward_layer")


def _dense(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}/kernel": (inputs, outputs), f"{name}/bias": (outputs,)}


def _linear(found: Mapping[str, Array], name: str, x: Array) -> Array:
    return x @ found[f"{name}/kernel"] + found[f"{name}/bias"]


def _norm(found: Mapping[str, Array], name: str, x: Array) -> Array:
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
    return x * found[f"{name}/gamma"] + found[f"{name}/beta"]


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))  # type: ignore[no-any-return]
