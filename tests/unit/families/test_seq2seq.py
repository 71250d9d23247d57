"""Encoders with their norms first, and decoders, against torch's own layers; dropout; what cannot be."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from conformance.conftest import one_thread
from longspan.errors import InputError
from longspan.families.bert.model import BertConfig
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.etc.model import EtcConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.mpnet.model import MPNetConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.seq2seq.model import Seq2Seq, Seq2SeqConfig, shift_right
from longspan.families.stitched.model import StitchedConfig
from longspan.layout import Layout
from longspan.tasks.registry import build
from unit.families.test_bodies import pattern_of
from unit.families.tiny import SIZES, some_ids, unsettle

__all__ = ["one_thread"]
PRE = SIZES | {"norm_first": True, "token_types": 0}
PLAIN: dict[str, EncoderConfig] = {
    "bert": BertConfig(**PRE),
    "bert, window": BertConfig(**PRE, radius=6),
    "bert, rescaled": BertConfig(**PRE, rescale_embeddings=True),
    "bert, types": BertConfig(**PRE | {"token_types": 2}),
    "longformer": LongformerConfig(**PRE, radius=(5, 3, 8)),
    "bigbird": BigBirdConfig(**PRE, block=4, random_blocks=1),
    "bigbird, full": BigBirdConfig(**PRE, attention_type="full"),
}
OTHERS: dict[str, EncoderConfig] = {
    "longformer": LongformerConfig(**PRE, radius=5),
    "longformer, biases": LongformerConfig(**PRE, radius=5, buckets=32),
    "poolingformer": PoolingformerConfig(**PRE, radius=5, wide_radius=16, two_level=(0, 2)),
    "stitched": StitchedConfig(**PRE | {"positions": 64}, radius=5, block=16),
    "mpnet": MPNetConfig(**PRE),
}
LENGTHS = (67, 1, 30)


def encoder(config: EncoderConfig) -> Any:
    torch.manual_seed(0)
    model = config.backbone()
    unsettle(model)
    return model.double().eval()


def copy(target: Any, attention: Any, layer: Any) -> None:
    """The weights of one of our layers, in torch's own."""
    for name in ("weight", "bias"):
        pairs = [
            (f"self_attn.in_proj_{name}", attention.qkv),
            (f"self_attn.out_proj.{name}", attention.out),
            (f"linear1.{name}", layer.feed_forward.up),
            (f"linear2.{name}", layer.feed_forward.down),
            (f"norm1.{name}", layer.attention_norm),
        ]
        if hasattr(layer, "cross"):
            projections = [getattr(part, name) for part in (layer.cross.query, layer.cross.kv)]
            target.get_parameter(f"multihead_attn.in_proj_{name}").copy_(torch.cat(projections))
            pairs += [
                (f"multihead_attn.out_proj.{name}", layer.cross.out),
                (f"norm2.{name}", layer.cross_norm),
                (f"norm3.{name}", layer.feed_forward_norm),
            ]
        else:
            pairs.append((f"norm2.{name}", layer.feed_forward_norm))
        for theirs, ours in pairs:
            target.get_parameter(theirs).copy_(getattr(ours, name))


def torchs(kind: Any, layer: Any, config: EncoderConfig, *, heads: int, inner: int) -> Any:
    act = "gelu" if config.activation == "gelu" else lambda x: nn.functional.gelu(x, approximate="tanh")
    found = kind(
        config.width,
        heads,
        inner,
        dropout=0.0,
        activation=act,
        layer_norm_eps=config.norm_eps,
        norm_first=config.norm_first,
        batch_first=True,
        dtype=torch.float64,
    )
    with torch.no_grad():
        copy(found, layer.attention, layer)
    return found


def embedded(model: Any, ids: Tensor) -> Tensor:
    config, tables = model.config, model.embeddings
    scale = config.width**0.5 if config.rescale_embeddings else 1.0
    places = torch.arange(len(ids)) + config.position_offset
    x: Tensor = scale * tables.words.weight[ids] + tables.positions.weight[places]
    return x if tables.types is None else x + tables.types.weight[0]


@pytest.mark.parametrize("name", PLAIN)
def test_norms_first_are_those_of_torchs_layers(name: str) -> None:
    config = PLAIN[name]
    model, ids = encoder(config), some_ids(sum(LENGTHS))
    found = model(ids, Layout.packed(LENGTHS)).split(LENGTHS)
    for one, part in zip(found, ids.split(LENGTHS), strict=True):
        alone, x = Layout.packed([len(part)]), embedded(model, part)
        for index, layer in enumerate(model.layers):
            counts = pattern_of(config, index, alone).matrix(alone).astype("float64")
            plain = torchs(
                nn.TransformerEncoderLayer, layer, config, heads=config.heads, inner=config.feed_forward
            )
            x = plain(x[None], torch.from_numpy(counts).log())[0]
        torch.testing.assert_close(one, model.layers[-1].closing_norm(x), rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", OTHERS)
def test_norms_first_stand_before_every_attention_and_block(name: str) -> None:
    """Whatever attention computes: what it is given, and what becomes of its result."""
    model = encoder(OTHERS[name])
    heard: dict[int, tuple[Tensor, Tensor, Tensor, Tensor]] = {}
    for index, layer in enumerate(model.layers):

        def hear(module: Any, args: Any, result: Tensor, index: int = index) -> None:
            heard[index] = (args[0], result)  # type: ignore[assignment]

        def hear_all(module: Any, args: Any, result: Tensor, index: int = index) -> None:
            heard[index] = (*heard[index][:2], args[0], result)

        layer.attention.register_forward_hook(hear)
        layer.register_forward_hook(hear_all)
    marks = [[0, 40], [0], [0]]
    found = model(some_ids(sum(LENGTHS)), Layout.packed(LENGTHS, marked=marks))
    assert model.embeddings.norm is None
    for index, layer in enumerate(model.layers):
        read, context, x, result = heard[index]
        norm = nn.functional.layer_norm
        first, second = layer.attention_norm, layer.feed_forward_norm
        torch.testing.assert_close(read, norm(x, x.shape[1:], first.weight, first.bias, first.eps))
        y = x + context @ layer.attention.out.weight.T + layer.attention.out.bias
        inner = norm(y, y.shape[1:], second.weight, second.bias, second.eps)
        up, down = layer.feed_forward.up, layer.feed_forward.down
        inner = layer.feed_forward.act(inner @ up.weight.T + up.bias)
        y = y + inner @ down.weight.T + down.bias
        last = layer.closing_norm
        assert (last is not None) == (index == len(model.layers) - 1)
        wanted = y if last is None else norm(y, y.shape[1:], last.weight, last.bias, last.eps)
        torch.testing.assert_close(result, wanted, rtol=0, atol=1e-11)
    assert found is heard[len(model.layers) - 1][3]


def whole(**changes: Any) -> Seq2SeqConfig:
    like = LongformerConfig(**SIZES | changes, radius=4, token_types=0)
    return Seq2SeqConfig(encoder=like, layers=3, heads=3, feed_forward=56, positions=40)


def body(config: Seq2SeqConfig, dtype: torch.dtype = torch.float64) -> Seq2Seq:
    torch.manual_seed(0)
    model = Seq2Seq(config)
    unsettle(model)
    return model.to(dtype).eval()


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_decoder_is_a_stack_of_torchs_layers(first: bool, scaled: bool) -> None:
    config = whole(norm_first=first, rescale_embeddings=scaled)
    model, texts = body(config), (9, 1, 12)
    memory = torch.randn(sum(LENGTHS), 24, dtype=torch.float64)
    ids = some_ids(sum(texts))
    found = model.decode(memory, Layout.packed(LENGTHS), ids, Layout.packed(texts)).split(texts)
    for one, part, seen in zip(found, ids.split(texts), memory.split(LENGTHS), strict=True):
        tables: Any = model.decoder.embeddings
        x = (24**0.5 if scaled else 1.0) * tables.words.weight[part] + tables.positions.weight[: len(part)]
        x = x if first else tables.norm(x)
        later = torch.full((len(part), len(part)), -torch.inf, dtype=torch.float64).triu(1)
        for layer in model.decoder.layers:
            plain = torchs(nn.TransformerDecoderLayer, layer, config.encoder, heads=3, inner=56)
            x = plain(x[None], seen[None], later)[0]
        closing = model.decoder.layers[-1].get_submodule("closing_norm") if first else nn.Identity()
        torch.testing.assert_close(one, closing(x), rtol=0, atol=1e-11)


@pytest.mark.parametrize("field", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_kind_of_dropout_drops_on_both_sides_in_training_only(field: str) -> None:
    plain, dropping = body(whole(), torch.float32), body(whole(**{field: 0.4}), torch.float32)
    documents, texts = Layout.packed(LENGTHS, marked=[[0]] * 3), Layout.packed([5, 1, 7])
    ids, words = some_ids(documents.size), some_ids(texts.size, seed=2)

    def read_and_written(model: Seq2Seq) -> tuple[Tensor, Tensor]:
        memory = model(ids, documents)
        return memory, model.decode(torch.ones_like(memory), documents, words, texts)

    for one, other in zip(read_and_written(plain), read_and_written(dropping), strict=True):
        assert torch.equal(one, other)
    dropping.train()
    torch.manual_seed(1)
    first, again = read_and_written(dropping), read_and_written(dropping)
    torch.manual_seed(1)
    repeated = read_and_written(dropping)
    for one, two, three in zip(first, again, repeated, strict=True):
        assert not torch.allclose(one, two)
        assert torch.equal(one, three)


def test_what_is_dropped_within_blocks_keeps_their_mean() -> None:
    from longspan.nn.feed_forward import FeedForward

    torch.manual_seed(0)
    block = FeedForward(5, 7, "relu", dropout=0.3).double()
    unsettle(block)
    x = torch.randn(1, 5, dtype=torch.float64)
    drawn = block(x.expand(20000, -1))
    inner = torch.relu(block.up(x))
    spread = (block.down.weight**2 @ (inner**2).T).squeeze() * 0.3 / 0.7
    torch.testing.assert_close(drawn.mean(0), block.eval()(x)[0], rtol=0, atol=0.05)
    torch.testing.assert_close(drawn.var(0), spread, rtol=0.1, atol=1e-6)


@pytest.mark.parametrize(
    "fields", [{"norm_first": True}, {"rescale_embeddings": True}, {"activation_dropout": 0.1}], ids=str
)
def test_etc_has_none_of_it(fields: dict[str, Any]) -> None:
    (name,) = fields
    with pytest.raises(InputError, match=f"`{name}` must be left out in an ETC"):
        EtcConfig(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"encoder": "longformer"}, "`encoder` must be the config of an encoder, but is .str"),
        (
            {"encoder": BertConfig(**SIZES, embedding_size=8)},
            "`embedding_size` must be None where a decoder shares the words",
        ),
        ({"encoder": whole()}, "`encoder` must be the config of an encoder, but is .Seq2SeqConfig"),
        ({"layers": 0}, "`layers` must be at least 1"),
        ({"heads": 5}, "`heads` must be a divisor of the width, 24"),
        ({"positions": 0}, "`positions` must be at least 1"),
        ({"position_offset": -1}, "`position_offset` must be at least 0"),
        ({"start_id": 53}, "`start_id` must be at most 52"),
        ({"eos_id": -1}, "`eos_id` must be at least 0"),
        ({"feed_forward": 2.5}, "`feed_forward` must be a whole number"),
    ],
)
def test_a_config_that_cannot_be_is_told(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(whole(), **fields)


def test_labels_are_moved_on_by_one_in_each_text() -> None:
    config = replace(whole(), start_id=9)
    labels = torch.tensor([11, 12, -100, 14, 21, 31, -100])
    found = shift_right(labels, Layout.packed([4, 1, 2]), config)
    assert found.tolist() == [9, 11, 12, config.encoder.pad_id, 9, 9, 31]


@pytest.mark.parametrize("task", ["fill", "tag", "choose", "sing"])
def test_tasks_that_a_model_with_a_decoder_does_not_have_are_told(task: str) -> None:
    with pytest.raises(InputError, match="`task` must be one of encode, "):
        build(whole(), task)


def test_what_is_read_twice_must_fit_both_sides() -> None:
    model = build(whole(), "answer")
    assert model.longest == 40
    ids = some_ids(41)
    with pytest.raises(InputError, match="at most 40 tokens long"):
        model(ids, Layout.packed([41], marked=[[0]]))
