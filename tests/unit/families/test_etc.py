"""ETC: what its paper says, in every variant, for every structure; and what holds for all encoders."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from helpers import READING
from longspan.engine.relations import Relations
from longspan.errors import InputError
from longspan.families.bert.model import Bert, BertConfig
from longspan.families.etc.model import (
    Etc,
    EtcConfig,
    bigbird_etc_base,
    bigbird_etc_large,
    etc_base,
    etc_large,
)
from longspan.layout import Layout
from longspan.nn.rows import ROWS
from longspan.structure.outlines import blocks
from longspan.structure.structure import Outline, Structure
from longspan.tasks.registry import build
from unit.families.etc_oracle import etc
from unit.families.tiny import SIZES, some_ids, unsettle

LENGTHS = (67, 1, 30, 131)
SMALL: dict[str, Any] = SIZES | {"radius": 5, "distance": 3, "relative": 11, "token_types": 5, "layers": 2}
VARIANTS: dict[str, dict[str, Any]] = {
    "as in the code": {},
    "sides": {"sharing": "sides", "share_out": True},
    "apart": {"sharing": "none", "share_feed_forward": False},
    "hard masks": {"hard_g2l": True, "hard_l2g": True},
    "flat": {"flat": True, "hard_g2l": True},
    "absolute": {"absolute": True, "position_offset": 2},
    "embedding_size": {"embedding_size": 10},
    "nothing told": {"distance": 0},
    "no labels": {"relative": 0},
    "far": {"radius": 200, "distance": 40, "relative": 97, "long_type": 0, "global_type": 4},
}
EVERY = pytest.mark.parametrize("name", VARIANTS)
SHARINGS = pytest.mark.parametrize("name", ["as in the code", "sides", "apart"])


def model_of(name: str = "as in the code", dtype: torch.dtype = torch.float32, **changes: Any) -> Etc:
    torch.manual_seed(0)
    model = Etc(EtcConfig(**SMALL | VARIANTS[name] | changes))
    unsettle(model)
    return model.to(dtype).eval()


def outline(n: int, g: int, seed: int) -> Outline:
    """Anything that may be said: orphans of both streams, two parents, links, segments, exceptions."""
    draw = np.random.default_rng(seed)
    return Outline(
        words=draw.integers(0, 53, g),
        parent=np.sort(draw.integers(-1, max(g - 1, 0), n)),  # nobody belongs to the last by parent
        paragraph=draw.integers(-1, g, n),
        linked=draw.integers(-1, g, n),
        segment=np.sort(draw.integers(0, 3, n)),
        free=draw.integers(0, 2, n),
        types=draw.integers(0, 5, g),
        global_segment=np.sort(draw.integers(0, 3, g)),
        global_free=draw.integers(0, 2, g),
    )


OUTLINES = [outline(n, g, n) for n, g in zip(LENGTHS, (13, 3, 0, 70), strict=True)]


def written_out(model: Etc, ids: Tensor, types: Tensor | None, outlines: list[Outline]) -> Tensor:
    """(N + G, C): the oracle on each text, long streams first."""
    sizes = [o.parent.size for o in outlines]
    kinds = [None] * len(sizes) if types is None else types.split(sizes)
    found = [etc(model, *row) for row in zip(ids.split(sizes), outlines, kinds, strict=True)]
    return torch.cat([long for long, _ in found] + [above for _, above in found])


def computed(model: Etc, ids: Tensor, types: Tensor | None, outlines: list[Outline]) -> Tensor:
    structure = Structure.packed(outlines)
    return torch.cat(model.streams(ids, structure.long, structure, types)[:2])


@EVERY
def test_both_streams_are_what_the_paper_says_forward_and_backward(name: str) -> None:
    model, ids = model_of(name, torch.float64), some_ids(sum(LENGTHS))
    types = torch.randint(0, 5, ids.shape, generator=torch.Generator().manual_seed(2))
    weights = torch.randn(sum(LENGTHS) + 86, SIZES["width"], dtype=torch.float64)
    found = []
    for compute in (computed, written_out):
        model.zero_grad()
        states = compute(model, ids, types, OUTLINES)
        states.mul(weights).sum().backward()
        found.append((states.detach(), {key: p.grad for key, p in model.named_parameters()}))
    (ours, ours_grad), (true, true_grad) = found
    torch.testing.assert_close(ours, true, rtol=0, atol=1e-11)
    for key, expected in true_grad.items():
        if expected is not None:
            given = ours_grad[key]
            assert given is not None, key
            torch.testing.assert_close(given, expected, rtol=1e-9, atol=1e-9, msg=key)


@EVERY
def test_float32_is_as_exact_as_written_out_in_float32(name: str) -> None:
    ids = some_ids(sum(LENGTHS))
    with torch.no_grad():
        true = written_out(model_of(name, torch.float64), ids, None, OUTLINES)
        naive = written_out(model_of(name), ids, None, OUTLINES)
        ours = computed(model_of(name), ids, None, OUTLINES)
    ulp = torch.finfo(torch.float32).eps * true.abs().max()
    assert (ours - true).abs().max() <= 2 * (naive - true).abs().max() + ulp


@pytest.mark.parametrize("n", [1, 4, 26, 27, 28, 63, 64, 65, 271])
def test_without_structure_a_document_is_read_in_blocks(n: int) -> None:
    model, ids = model_of(dtype=torch.float64, hard_g2l=True), some_ids(n)
    with torch.no_grad():
        found = model(ids, Layout.packed([n]))
        expected, _ = etc(model, ids, blocks(n, 27))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_structure_travels_as_tags_of_the_layout() -> None:
    model, ids = model_of(dtype=torch.float64), some_ids(30)
    made = Outline(words=np.array([1, 5, 1]), parent=np.arange(30) // 15 * 2, paragraph=np.full(30, 1))
    with torch.no_grad():
        found = model(ids, Layout.packed([30], tags=made.tags))
        expected, _ = etc(model, ids, made)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_a_marked_token_has_a_global_token_of_its_own() -> None:
    model, ids = model_of(dtype=torch.float64), some_ids(31)
    parent = np.array([0, *[2] * 7, 1, *[2] * 20, 3, 3])
    made = Outline(words=np.array([3, 3, 1, 1]), parent=parent)
    with torch.no_grad():
        found = model(ids, Layout.packed([31], marked=[[0, 8]]))
        expected, _ = etc(model, ids, made)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@SHARINGS
def test_a_document_is_read_alike_alone_and_among_others(name: str) -> None:
    model, ids = model_of(name), some_ids(sum(LENGTHS))
    with torch.no_grad():
        together = model.streams(ids, Layout.packed(LENGTHS))
        parts = together.long.split(LENGTHS)
        for part, n, found in zip(ids.split(LENGTHS), LENGTHS, parts, strict=True):
            torch.testing.assert_close(model(part, Layout.packed([n])), found, rtol=0, atol=1e-5)


@SHARINGS
def test_padding_changes_nothing(name: str) -> None:
    model, ids = model_of(name), some_ids(3 * 40).view(3, 40)
    mask = torch.arange(40) < torch.tensor([[40], [7], [23]])
    with torch.no_grad():
        padded = model(ids.flatten(), Layout.padded(mask.numpy())).view(3, 40, -1)
        packed = model(ids[mask], Layout.packed([40, 7, 23]))
    torch.testing.assert_close(padded[mask], packed, rtol=0, atol=1e-5)


def test_an_empty_global_stream_with_the_whole_in_reach_is_bert() -> None:
    sizes = SIZES | {"token_types": 3, "norm_eps": 1e-12}
    torch.manual_seed(0)
    bert = Bert(BertConfig(**sizes)).eval()
    unsettle(bert)
    lifted = EtcConfig(
        **sizes, absolute=True, long_type=0, block=0, radius=300, activation="gelu", share_out=True
    )
    model = Etc(lifted).eval()
    missing, unexpected = model.load_state_dict(bert.state_dict(), strict=False)
    assert not unexpected
    assert all("global" in key or "relative" in key for key in missing)
    for key, parameter in model.named_parameters():
        if "relative" in key:
            parameter.data.zero_()
    ids, layout = some_ids(230), Layout.packed([200, 30])
    with torch.no_grad():
        torch.testing.assert_close(model(ids, layout), bert(ids, layout), rtol=0, atol=1e-6)
        assert model.streams(ids, layout).globals.shape == (0, 24)


def test_segments_part_the_window_unless_the_sequence_is_flat() -> None:
    ids, made = some_ids(20), Outline(
        words=np.zeros(0, np.int32), parent=np.full(20, -1), segment=np.arange(20) // 10
    )  # fmt: skip
    structure, changed = Structure.packed([made]), ids.clone()
    changed[9] += 1
    for flat in (False, True):
        model = model_of(flat=flat, layers=1)
        with torch.no_grad():
            a, b = (model.streams(x, structure.long, structure).long for x in (ids, changed))
        assert torch.equal(a[10:], b[10:]) is not flat


def test_dropout_is_drawn_from_the_given_seed_and_differs_between_streams() -> None:
    model = model_of(dropout=0.2, attention_dropout=0.3).train()
    ids, layout = some_ids(90), Layout.packed([60, 30])
    results = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        results.append(model(ids, layout))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    site = Structure.packed([blocks(60, 4)]).joined.sites
    assert np.unique(site.position).size == site.position.size  # pairs are dropped by place


@SHARINGS
def test_checkpointing_changes_memory_not_gradients(name: str) -> None:
    model = model_of(name, dropout=0.2, attention_dropout=0.2).train()
    found = []
    for checkpointing in (False, True):
        model.gradient_checkpointing = checkpointing
        model.zero_grad()
        torch.manual_seed(3)
        model(some_ids(90), Layout.packed([60, 30])).square().mul(torch.arange(24)).sum().backward()
        found.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


def test_pieces_of_rows_make_no_difference() -> None:
    n = ROWS + 77
    model, ids, layout = model_of("apart"), some_ids(n), Layout.packed([n])
    with torch.no_grad():
        pieces = model(ids, layout)
    torch.testing.assert_close(pieces, model(ids, layout).detach(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_types_come_near(dtype: torch.dtype) -> None:
    ids, layout = some_ids(100), Layout.packed([80, 20])
    with torch.no_grad():
        exact, rough = model_of()(ids, layout), model_of(dtype=dtype)(ids, layout)
    assert rough.dtype == dtype
    assert (rough.float() - exact).norm() < 8 * torch.finfo(dtype).eps * exact.norm()


def test_a_longer_document_has_larger_blocks_not_more_global_tokens() -> None:
    config = EtcConfig(**SMALL, block=4, most_globals=20)
    for n, expected in ((60, 15), (80, 20), (81, 17), (1000, 20)):
        assert config.structure(Layout.packed([n])).globals.size == expected


@pytest.mark.parametrize("task", READING)
def test_every_head_stands_on_the_long_stream(task: str) -> None:
    torch.manual_seed(0)
    model = build(EtcConfig(**SMALL), task, labels=3).eval()
    with torch.no_grad():
        found = model(some_ids(40), Layout.packed([30, 10], marked=[[], []]))
    rows = {"encode": 2, "classify": 2, "choose": 2}.get(task, 40)
    assert found.shape[0] == rows
    assert torch.isfinite(found).all()


def test_calls_are_the_attentions_of_every_layer() -> None:
    config = EtcConfig(**SMALL)
    layers = config.attention(Layout.packed([60, 1]))
    assert len(layers) == 2
    assert [call.name for call in layers[0]] == ["tokens", "global tokens"]
    assert [call.queries.size for call in layers[0]] == [61, 4]
    assert all(call.keys.size == 65 for call in layers[0])


@pytest.mark.parametrize(
    ("preset", "millions"),
    [(etc_base, 166), (etc_large, 539), (bigbird_etc_base, 181), (bigbird_etc_large, 558)],
)
def test_presets_have_the_published_sizes(preset: Any, millions: int) -> None:
    config = preset()
    with torch.device("meta"):
        model = Etc(config)
    found = sum(p.numel() for p in model.parameters()) / 1e6
    assert config.radius * 3 in (252, 507)
    assert found == pytest.approx(millions, rel=0.005)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sharing": "some"}, "`sharing` must be one of all, sides, none, but is 'some'"),
        ({"relative": 9}, "`relative` must be at least 10 for a distance of 3, but is 9"),
        ({"buckets": 32}, "`buckets` must be 0 in an ETC, but is 32"),
        ({"long_type": 5}, "`long_type` must be at most 4, but is 5"),
        ({"paragraph_id": 53}, "`paragraph_id` must be at most 52, but is 53"),
        ({"radius": 0}, "`radius` must be at least 1"),
        ({"block": -1}, "`block` must be at least 0"),
        ({"token_types": 0}, "`token_types` must be at least 1"),
    ],
)
def test_wrong_sizes_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        EtcConfig(**SMALL | changes)


def test_wrong_inputs_are_named() -> None:
    model, layout = model_of(), Layout.packed([3])
    with pytest.raises(InputError, match="`ids` must be from 0 to 52, but is 99"):
        model(torch.tensor([3, 4, 99]), layout)
    with pytest.raises(InputError, match="`token_types` must be from 0 to 4, but is 9"):
        model(some_ids(3), layout, torch.tensor([0, 9, 0]))
    with pytest.raises(InputError, match="`structure` must be of the 3 tokens of the layout, but is 7"):
        model.streams(some_ids(3), layout, Structure.packed([blocks(7, 3)]))
    with pytest.raises(InputError, match="at most 300 tokens long"):
        model_of("absolute")(some_ids(301), Layout.packed([301]))
    with pytest.raises(InputError, match="`size` must be at least 10, but is 9"):
        Relations(3, 9)
