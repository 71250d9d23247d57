"""Poolingformer: what it computes is its written definition, however documents are laid out."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from longspan.errors import InputError
from longspan.families.longformer.model import Longformer, LongformerConfig
from longspan.families.poolingformer.model import Poolingformer, PoolingformerConfig, lite
from longspan.layout import Layout
from longspan.nn.linear import new_linear
from longspan.nn.pooling import DynamicPooling, MaxPooling, MeanPooling, Pooling, Slots
from longspan.patterns import Full, Window
from unit.families.poolingformer_oracle import Document, hidden_states
from unit.families.tiny import some_ids, unsettle

SIZES: dict[str, Any] = {
    "vocab_size": 53,
    "width": 21,
    "layers": 2,
    "heads": 3,
    "feed_forward": 11,
    "positions": 80,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "radius": 2,
    "wide_radius": 9,
    "kernel": 5,
    "stride": 3,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "ldconv": {"two_level": (0, 1)},
    "mean": {"pooling": "mean", "kernel": 4},
    "max": {"pooling": "max"},
    "delta from the first": {"delta_from": "first", "kernel": 6},
    "delta from the mean": {"delta_from": "mean", "stride": 2},
    "delta by head": {"delta_by_head": True},
    "one delta map": {"delta_shared": True},
    "one delta map by head": {"delta_shared": True, "delta_by_head": True, "delta_from": "mean"},
    "mix": {"mix": True},
    "shared weights": {"share_weights": True},
    "lite": {"mix": True, "share_weights": True},
    "lite by head": {"mix": True, "share_weights": True, "delta_by_head": True},
    "lite mean": {"mix": True, "share_weights": True, "pooling": "mean"},
    "shared max": {"share_weights": True, "pooling": "max"},
    "no residual": {"residual": False},
    "every token a slot": {"kernel": 1, "stride": 1},
    "biases by distance": {"buckets": 32, "token_types": 0},
}
LENGTHS = [1, 2, 3, 5, 31, 7]
"""A single token, stride - 1, stride, kernel, and primes."""
MARKED = [[0], [], [1], [0, 4], [0, 17], []]


def model_of(dtype: torch.dtype = torch.float64, **options: Any) -> Any:
    torch.manual_seed(0)
    model = Poolingformer(PoolingformerConfig(**SIZES | options))
    unsettle(model)
    return model.to(dtype).eval()


def documents(ids: Tensor, lengths: list[int], marked: list[list[int]]) -> list[Document]:
    parts = zip(ids.split(lengths), lengths, marked, strict=True)
    return [Document(part, [True] * n, marks) for part, n, marks in parts]


def gradients(model: Poolingformer, hidden: Tensor) -> dict[str, Tensor]:
    """Of a made-up loss, for every parameter."""
    model.zero_grad()
    upstream = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(2)).to(hidden.dtype)
    hidden.backward(upstream)
    return {
        name: p.grad.clone() if p.grad is not None else torch.zeros_like(p)
        for name, p in model.named_parameters()
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_computes_its_definition_and_the_gradients_of_it(variant: str) -> None:
    model, ids = model_of(**VARIANTS[variant]), some_ids(sum(LENGTHS))
    found = model(ids, Layout.packed(LENGTHS, marked=MARKED))
    wanted = torch.cat([hidden_states(model, one) for one in documents(ids, LENGTHS, MARKED)])
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    ours, theirs = gradients(model, found), gradients(model, wanted)
    assert any("second" in name or "qkv" in name for name in ours)
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-10, atol=1e-11, msg=name)
    with torch.no_grad():  # memory is reused here
        torch.testing.assert_close(
            model(ids, Layout.packed(LENGTHS, marked=MARKED)), wanted, rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("grad", [False, True], ids=["reading", "training"])
def test_float32_errs_at_most_twice_as_much_as_the_definition_in_float32(variant: str, grad: bool) -> None:
    exact, model = model_of(**VARIANTS[variant]), model_of(torch.float32, **VARIANTS[variant])
    lengths, marked = [37, 5], [[0, 9], []]
    ids = some_ids(sum(lengths))
    with torch.set_grad_enabled(grad):
        found = model(ids, Layout.packed(lengths, marked=marked))
    with torch.no_grad():
        naive, wanted = (
            torch.cat([hidden_states(m, one) for one in documents(ids, lengths, marked)])
            for m in (model, exact)
        )
    ulp = wanted.abs().max() * torch.finfo(torch.float32).eps
    assert (found - wanted).abs().max() <= 2 * (naive - wanted).abs().max() + ulp


@torch.no_grad()
@pytest.mark.parametrize("variant", VARIANTS)
def test_batch_mates_change_nothing(variant: str) -> None:
    model, ids = model_of(**VARIANTS[variant]), some_ids(sum(LENGTHS))
    together = model(ids, Layout.packed(LENGTHS, marked=MARKED)).split(LENGTHS)
    for one, marks, found in zip(ids.split(LENGTHS), MARKED, together, strict=True):
        alone = model(one, Layout.packed([len(one)], marked=[marks]))
        torch.testing.assert_close(found, alone, rtol=0, atol=1e-13)


@pytest.mark.parametrize("variant", VARIANTS)
def test_padding_takes_no_part_wherever_it_stands(variant: str) -> None:
    model = model_of(**VARIANTS[variant])
    mask = torch.ones(4, 23, dtype=torch.bool)
    mask[0, 11:] = False  # behind the document
    mask[1, :6] = False  # before it
    mask[2, 8:17] = False  # a hole wider than a slot
    mask[3, 1:] = False
    marks = torch.zeros_like(mask)
    marks[0, 0] = marks[1, 8] = marks[2, 20] = True
    ids = some_ids(mask.numel()).view(mask.shape)
    found = model(ids.flatten(), Layout.padded(mask.numpy(), marked=marks.numpy()))[mask.flatten()]
    parts = [
        hidden_states(model, Document(row, real.tolist(), marked.nonzero().flatten().tolist()))
        for row, real, marked in zip(ids, mask, marks, strict=True)
    ]
    wanted = torch.cat(parts)[mask.flatten()]
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    ours, theirs = gradients(model, found), gradients(model, wanted)
    for name, gradient in ours.items():
        assert torch.isfinite(gradient).all(), name
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-10, atol=1e-11, msg=name)
    packed = model(ids[0, :11], Layout.packed([11], marked=[[0]]))
    torch.testing.assert_close(packed, found[:11], rtol=0, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("variant", ["ldconv", "delta by head", "mean", "max", "lite"])
def test_half_types_are_read_too(variant: str, dtype: torch.dtype) -> None:
    wanted, model = model_of(**VARIANTS[variant]), model_of(dtype, **VARIANTS[variant])
    layout, ids = Layout.packed(LENGTHS, marked=MARKED), some_ids(sum(LENGTHS))
    found = model(ids, layout)
    assert found.dtype == dtype
    assert torch.cosine_similarity(found.double(), wanted(ids, layout)).min() > 0.999


@torch.no_grad()
def test_documents_may_be_empty() -> None:
    model = model_of()
    ids = some_ids(5)
    found = model(ids, Layout.packed([0, 5, 0]))
    torch.testing.assert_close(found, model(ids, Layout.packed([5])), rtol=0, atol=1e-13)


def pooling(kind: str) -> Pooling:
    if kind == "mean":
        return MeanPooling()
    if kind == "max":
        return MaxPooling()
    return DynamicPooling(21, kernel=5, source=kind)


@pytest.mark.parametrize("kind", ["mean", "max", "centre", "first"])
def test_pooling_before_a_projection_equals_pooling_after_it(kind: str) -> None:
    torch.manual_seed(0)
    slots, module = Slots.of(Layout.packed([13, 4]), 5, 3), pooling(kind).double()
    key, value = new_linear(21, 21).double(), new_linear(21, 21).double()
    for weight in (*module.parameters(), *key.parameters(), *value.parameters()):
        torch.nn.init.normal_(weight)
    x = torch.randn(17, 21, dtype=torch.float64)
    for a, b in zip(
        module.projected(x, key, value, slots, None), module(key(x), value(x), slots), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_both_levels_drop_in_training_each_for_itself() -> None:
    model, ids = model_of(attention_dropout=0.5, two_level=(0,)), some_ids(31)
    layout = Layout.packed([31])
    seen = []
    second = model.layers[0].attention.second
    second.register_forward_hook(
        lambda _m, _a, options, out: seen.append((options["dropout"], out)), with_kwargs=True
    )
    model.train()
    first, again = model(ids, layout), model(ids, layout)
    assert not torch.equal(first, again)
    (one, _), (other, _) = seen
    assert one is not None
    assert one != other
    model.eval()
    model(ids, layout)
    assert seen[-1][0] is None


def test_checkpointing_changes_no_gradient() -> None:
    model, ids, layout = model_of(), some_ids(31), Layout.packed([31], marked=[[0]])
    plain = gradients(model, model(ids, layout))
    model.gradient_checkpointing = True
    for name, gradient in gradients(model, model(ids, layout)).items():
        torch.testing.assert_close(gradient, plain[name], rtol=0, atol=1e-12)


@torch.no_grad()
def test_a_second_level_of_zero_values_is_a_longformer() -> None:
    model = model_of(two_level=(0, 1))
    for layer in model.layers:
        layer.attention.second.start_at_zero(layer.attention.qkv)
    sizes = {name: value for name, value in SIZES.items() if name not in ("wide_radius", "kernel", "stride")}
    plain = Longformer(LongformerConfig(**sizes)).double().eval()
    plain.load_state_dict(model.state_dict(), strict=False)
    ids, layout = some_ids(31), Layout.packed([31], marked=[[0]])
    # Not equal: the last bits of torch's products in float64 follow the alignment of their rows.
    torch.testing.assert_close(model(ids, layout), plain(ids, layout), rtol=0, atol=1e-13)


def test_zero_values_learn_at_once_and_queries_and_keys_after_them() -> None:
    model, ids, layout = model_of(two_level=(0,)), some_ids(31), Layout.packed([31])
    second = model.layers[0].attention.second
    second.start_at_zero(model.layers[0].attention.qkv)
    found = gradients(model, model(ids, layout))
    at = "layers.0.attention.second."
    assert found[f"{at}value.weight"].abs().max() > 0
    assert found[f"{at}query.weight"].abs().max() == found[f"{at}key.weight"].abs().max() == 0
    second.value.weight.data -= 0.1 * found[f"{at}value.weight"]
    found = gradients(model, model(ids, layout))
    for name in ("query.weight", "key.weight", "pooling.delta.weight"):
        assert found[at + name].abs().max() > 0, name


def test_a_config_tells_its_attention_calls() -> None:
    config = PoolingformerConfig(**SIZES | {"two_level": (1,)})
    layout = Layout.packed([31], marked=[[0]])
    first, second = config.attention(layout)
    assert [call.name for call in first] == ["window", "global rows"]
    window, whole, pooled = second
    assert (window, whole.pattern) == (first[0], Full())
    assert (pooled.name, pooled.pattern, pooled.pooled) == ("pooled", Window(9), (5, 3))
    assert pooled.keys == layout.pool(5, 3)


def test_the_usual_sizes_are_the_papers() -> None:
    config = PoolingformerConfig(layers=24)
    assert (config.radius[0], config.wide_radius, config.kernel, config.stride) == (128, 512, 5, 4)  # type: ignore[index]
    assert config.two_level == tuple(range(14, 20))
    assert [PoolingformerConfig(layers=n).two_level for n in (1, 2, 12)] == [(0,), (1,), (7, 8, 9)]
    assert lite(config) == replace(config, mix=True, share_weights=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"two_level": 1}, "`two_level` must be a list of layers, or None for a quarter of them, but is 1."),
        ({"two_level": (2,)}, "`two_level` must be at most 1, but is 2."),
        ({"two_level": (-1,)}, "`two_level` must be at least 0, but is -1. Layers are counted from 0."),
        ({"two_level": (1, 1)}, "`two_level` must be a list in which no layer stands twice"),
        ({"wide_radius": 0}, "`wide_radius` must be at least 1, but is 0."),
        ({"kernel": 2}, "`kernel` must be at least 3, but is 2. Every token must fall into a slot."),
        ({"pooling": "sum"}, "`pooling` must be one of ldconv, mean, max, but is 'sum'."),
        ({"delta_from": "last"}, "`delta_from` must be one of centre, first, mean, but is 'last'."),
        ({"share_global_projections": True}, "`share_global_projections` must be False in a Poolingformer"),
    ],
)
def test_a_config_that_cannot_be_says_why(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        PoolingformerConfig(**SIZES | options)
    assert str(caught.value).startswith(message)
