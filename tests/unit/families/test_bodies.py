"""What holds for every encoder: the paper's formula, packing, padding, history, precision, memory."""

from typing import Any

import pytest
import torch
from torch import Tensor

from longspan.errors import InputError
from longspan.families.bert.model import BertConfig
from longspan.families.bigbird.model import BigBird, BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.eurobert.model import EuroBertConfig
from longspan.families.longformer.model import Longformer, LongformerConfig
from longspan.families.modernbert.model import ModernBertConfig
from longspan.families.mpnet.model import MPNetConfig
from longspan.families.rotary import RotaryConfig
from longspan.layout import Layout
from longspan.nn.relative import bucket
from longspan.nn.rows import ROWS
from longspan.patterns import Full, Pattern
from unit.families import rotary_oracle
from unit.families.tiny import SIZES, UNMARKED, body, configs, modern, some_ids

EVERY = pytest.mark.parametrize("name", configs())
DOCUMENTS = [67, 1, 30, 131]
MARKED = [[0, 5, 40], [0], [], [130]]


def written_out(model: Any, ids: Tensor, layout: Layout) -> Tensor:
    """The model in float64 with one dense softmax for each layer and head, and the global rows put in."""
    config = model.config
    e = model.embeddings
    places = torch.from_numpy(layout.sites.position.astype("int64")) + config.position_offset
    kinds = e.types.weight[0] if config.token_types else 0.0
    x: Tensor = e.norm(e.words(ids) + kinds + e.positions(places))
    x = x if e.projection is None else e.projection(x)
    bias = written_out_bias(model, layout)
    marked = torch.from_numpy(layout.sites.marked.copy())
    for index, layer in enumerate(model.layers):
        a = layer.attention
        context = dense(a.qkv(x), pattern_of(config, index, layout), layout, config.heads, bias)
        if hasattr(a, "global_query"):
            apart = torch.cat([a.global_query(x), a.global_key(x), a.global_value(x)], -1)
            whole = dense(apart, Full(), layout, config.heads, bias)
            context = torch.where(marked[:, None], whole, context)
        x = layer.attention_norm(x + a.out(context))
        x = layer.feed_forward_norm(x + layer.feed_forward(x))
    return x


def written_out_bias(model: Any, layout: Layout) -> Tensor | float:
    """(H, N, N): what stands in the table for each distance, global or not."""
    if not model.config.buckets:
        return 0.0
    place = torch.from_numpy(layout.sites.position.astype("int64"))
    found: Tensor = model.relative_bias.table(bucket(place[None, :] - place[:, None], 32)).permute(2, 0, 1)
    return found


def pattern_of(config: Any, layer: int, layout: Layout) -> Pattern:
    if isinstance(config, LongformerConfig):
        return config.pattern(layer)
    if isinstance(config, BigBirdConfig):
        return config.pattern(layer, training=False, marked=bool(layout.marked_rows.size))
    pattern: Pattern = Full() if isinstance(config, MPNetConfig) else config.pattern
    return pattern


def dense(qkv: Tensor, pattern: Pattern, layout: Layout, heads: int, bias: Tensor | float) -> Tensor:
    q, k, v = qkv.view(layout.size, 3, heads, -1).permute(1, 2, 0, 3)  # -> (H, N, D) each
    counts = torch.stack([torch.from_numpy(pattern.head(h).matrix(layout).copy()) for h in range(heads)])
    scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5 + bias + counts.double().log()
    weights = scores.softmax(-1).nan_to_num(0.0)  # a row that sees nothing is 0
    context: Tensor = (weights @ v).transpose(0, 1).flatten(1)
    return context


@pytest.mark.parametrize("name", [name for name in configs() if name not in modern()])
def test_a_model_computes_what_its_paper_says(name: str) -> None:
    model = body(configs()[name], torch.float64)
    marked = None if name in UNMARKED else MARKED
    layout, ids = Layout.packed(DOCUMENTS, marked=marked), some_ids(sum(DOCUMENTS))
    rotary = isinstance(model.config, RotaryConfig)
    expected = rotary_oracle.written_out(model, ids, layout) if rotary else written_out(model, ids, layout)
    torch.testing.assert_close(model(ids, layout), expected, rtol=0, atol=1e-12)


@EVERY
def test_a_document_is_read_alike_alone_and_among_others(name: str) -> None:
    model, ids = body(configs()[name]), some_ids(sum(DOCUMENTS))
    with torch.no_grad():
        together = model(ids, Layout.packed(DOCUMENTS, marked=MARKED)).split(DOCUMENTS)
        for part, n, marked, found in zip(ids.split(DOCUMENTS), DOCUMENTS, MARKED, together, strict=True):
            alone = model(part, Layout.packed([n], marked=[marked]))
            torch.testing.assert_close(alone, found, rtol=0, atol=1e-5)


@EVERY
def test_padding_changes_nothing(name: str) -> None:
    model, ids = body(configs()[name]), some_ids(3 * 40).view(3, 40)
    mask = torch.arange(40) < torch.tensor([[40], [7], [23]])
    with torch.no_grad():
        padded = model(ids.flatten(), Layout.padded(mask.numpy())).view(3, 40, -1)
        packed = model(ids[mask], Layout.packed([40, 7, 23]))
    torch.testing.assert_close(padded[mask], packed, rtol=0, atol=1e-5)


@EVERY
def test_nothing_is_remembered_between_calls(name: str) -> None:
    model, ids, layout = body(configs()[name]), some_ids(250), Layout.packed([250])
    with torch.no_grad():
        before = model(ids, layout)
        model(some_ids(3), Layout.packed([3]))
        assert torch.equal(model(ids, layout), before)


@EVERY
def test_pieces_of_rows_make_no_difference(name: str) -> None:
    lengths = [300] * (ROWS // 300 + 1) + [77]
    model, ids, layout = body(configs()[name]), some_ids(sum(lengths)), Layout.packed(lengths)
    with torch.no_grad():
        pieces = model(ids, layout)
    torch.testing.assert_close(pieces, model(ids, layout).detach(), rtol=0, atol=1e-5)


@EVERY
def test_checkpointing_changes_memory_not_gradients(name: str) -> None:
    config = configs()[name]
    model = body(type(config)(**{**vars(config), "dropout": 0.2, "attention_dropout": 0.2})).train()
    ids, layout = some_ids(90), Layout.packed([60, 30], marked=[[0], []])
    found = []
    for checkpointing in (False, True):
        model.gradient_checkpointing = checkpointing
        model.zero_grad()
        torch.manual_seed(3)
        model(ids, layout).square().mul(torch.arange(24)).sum().backward()
        found.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


@EVERY
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_types_come_near(name: str, dtype: torch.dtype) -> None:
    config, ids, layout = configs()[name], some_ids(100), Layout.packed([80, 20], marked=[[0], []])
    with torch.no_grad():
        exact, rough = body(config)(ids, layout), body(config, dtype)(ids, layout)
    assert rough.dtype == dtype
    assert (rough.float() - exact).norm() < 8 * torch.finfo(dtype).eps * exact.norm()


def test_bigbird_draws_in_training_and_not_in_evaluation() -> None:
    config = BigBirdConfig(**SIZES, block=4, random_blocks=2)
    evaluated, trained = (config.pattern(1, training=training) for training in (False, True))
    assert "hf-eval" in repr(evaluated)
    assert "hf-train" in repr(trained)
    assert config.pattern(1, training=True) != config.pattern(2, training=True)
    same = BigBirdConfig(**SIZES, random="uniform")
    assert same.pattern(0, training=True) == same.pattern(0, training=False)


def test_global_tokens_can_be_chosen_in_bigbird() -> None:
    model, ids = body(configs()["uniform"]), some_ids(200)
    with torch.no_grad():
        plain = model(ids, Layout.packed([200]))
        marked = model(ids, Layout.packed([200], marked=[[100]]))
    assert not torch.allclose(plain[10], marked[10])


def test_new_global_projections_are_copies_of_the_local_ones() -> None:
    model = Longformer(LongformerConfig(**SIZES, radius=4))
    a: Any = model.layers[0]
    expected = a.attention.qkv.weight.chunk(3)
    found = a.attention.global_query, a.attention.global_key, a.attention.global_value
    assert all(torch.equal(part, linear.weight) for part, linear in zip(expected, found, strict=True))


def test_a_document_longer_than_the_positions_is_an_error() -> None:
    model = body(configs()["longformer"])
    with pytest.raises(InputError, match=r"at most 300 tokens long.*but is 301.*overflow='window'"):
        model(some_ids(301), Layout.packed([301]))


@pytest.mark.parametrize(
    ("ids", "types", "message"),
    [
        (torch.tensor([3, 4, 99]), None, "`ids` must be from 0 to 52, but is 99"),
        (torch.tensor([3, -1, 9]), None, "`ids` must be from 0 to 52, but is -1"),
        (torch.tensor([3, 4]), None, r"`ids` must be of shape \(3,\)"),
        (torch.tensor([3, 4, 5]), torch.tensor([0, 1, 0]), "`token_types` must be from 0 to 0, but is 1"),
        (torch.tensor([3, 4, 5]), torch.tensor([0]), r"`token_types` must be of shape \(3,\) like `ids`"),
    ],
)
def test_wrong_inputs_are_named(ids: Tensor, types: Tensor | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        body(configs()["longformer"])(ids, Layout.packed([3]), types)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (LongformerConfig, {"heads": 5}, "`width` must be a multiple of the 5 heads, but is 24"),
        (LongformerConfig, {"layers": 0}, "`layers` must be at least 1"),
        (LongformerConfig, {"layers": 10**9}, "`layers` must be at most"),
        (
            LongformerConfig,
            {"radius": (1, 2)},
            "`radius` must be one number, or one for each of the 3 layers",
        ),
        (LongformerConfig, {"radius": 0}, "`radius` must be at least 1"),
        (
            LongformerConfig,
            {"dilation": (1, 1, (1, 2, 3))},
            r"`dilation\[2\]` must be one number, or one for",
        ),
        (LongformerConfig, {"norm_eps": float("nan")}, "`norm_eps` must be a number"),
        (LongformerConfig, {"dropout": 1.0}, "`dropout` must be from 0 to below 1"),
        (LongformerConfig, {"activation": "os.system"}, "`activation` must be one of gelu"),
        (LongformerConfig, {"pad_id": 53}, "`pad_id` must be less than the vocabulary"),
        (BigBirdConfig, {"random": "dice"}, "`random` must be one of hf, tf"),
        (BigBirdConfig, {"attention_type": "half"}, "`attention_type` must be sparse or full"),
        (BigBirdConfig, {"block": 0}, "`block` must be at least 1"),
        (LongformerConfig, {"buckets": 30}, "`buckets` must be a multiple of 4"),
        (LongformerConfig, {"embedding_size": 0}, "`embedding_size` must be at least 1"),
        (MPNetConfig, {"buckets": 0}, "`buckets` must be at least 4, but is 0. Use BertConfig"),
        (BertConfig, {"buckets": 32}, "`buckets` must be 0 in a BERT, but is 32."),
        (ModernBertConfig, {"heads": 8}, "`width` must be an even number for each head, but is 24"),
        (ModernBertConfig, {"rope": {"rope_theta": 3.0}}, "`rope` must be RopeParameters"),
        (ModernBertConfig, {"local_rope": 3.0}, "`local_rope` must be RopeParameters"),
        (ModernBertConfig, {"layer_types": "full"}, "`layer_types` must be a tuple of words"),
        (
            EuroBertConfig,
            {"heads": 6, "kv_heads": 4},
            "`kv_heads` must be a divisor of the 6 heads",
        ),
        (EuroBertConfig, {"kv_heads": 0}, "`kv_heads` must be at least 1"),
        (EuroBertConfig, {"head_dim": 7}, "`head_dim` must be an even number, but is 7"),
        (EuroBertConfig, {"classifier_pooling": "max"}, "`classifier_pooling` must be one of first"),
    ],
)
def test_wrong_sizes_are_named(kind: type[EncoderConfig], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        kind(**{**SIZES, **options})


def test_types_are_refused_by_a_model_without_them() -> None:
    with pytest.raises(InputError, match="`token_types` must be None, as the model has none"):
        body(configs()["mpnet"])(some_ids(3), Layout.packed([3]), torch.zeros(3, dtype=torch.long))


def test_full_attention_can_be_asked_of_bigbird() -> None:
    config = BigBirdConfig(**SIZES, block=4, attention_type="full")
    assert BigBird(config).config.pattern(0, training=False) == Full()
