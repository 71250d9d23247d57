"""The language model of bytes: its formula, its sizes, what it may see, its memory and its files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from longspan.checkpoints.load import load_model
from longspan.checkpoints.matching import NoInit
from longspan.checkpoints.save import save_model
from longspan.errors import CheckpointError, InputError
from longspan.families.char_lm.files import LARGE, SMALL, TINY
from longspan.families.char_lm.memory import read_on
from longspan.families.char_lm.model import (
    CharLM,
    CharLMConfig,
    config_of,
    decode,
    encode,
    new_model,
    set_windows,
)
from longspan.layout import Layout
from unit.families.char_lm import BOTH, config, model, numpy_bytes, one, some_ids, written_out

EVERY = pytest.mark.parametrize("kind", BOTH)


@EVERY
@pytest.mark.parametrize("closing_norm", [True, False])
def test_it_computes_what_the_papers_say(kind: str, closing_norm: bool) -> None:
    made, ids = model(kind, torch.float64, closing_norm=closing_norm), some_ids(37)
    atol = 1e-12 if kind == "relative" else 1e-5  # angles are kept in float32
    torch.testing.assert_close(made(ids, one(37)), written_out(made, ids), rtol=0, atol=atol)


@EVERY
@pytest.mark.parametrize("length", [1, 63, 64, 65, 131])
def test_what_comes_later_changes_nothing(kind: str, length: int) -> None:
    made, ids = model(kind), some_ids(length)
    with torch.no_grad():
        before = made(ids, one(length))
        for place in {0, length // 2, length - 1}:
            changed = ids.clone()
            changed[place] = (ids[place] + 1) % 256
            after = made(changed, one(length))
            assert torch.equal(after[:place], before[:place])
            assert not torch.equal(after[place], before[place])


@EVERY
def test_a_prediction_depends_on_its_receptive_field_and_no_more(kind: str) -> None:
    made, ids = model(kind), some_ids(100)
    field = config_of(made).receptive_field
    assert field == 3 + 7 * 2 + 5 * 3
    far, near = ids.clone(), ids.clone()
    far[98 - field] += 1
    near[99 - field] += 1
    with torch.no_grad():
        last, without, within = (made(one_of % 256, one(100))[-1] for one_of in (ids, far, near))
    assert torch.equal(last, without)
    assert not torch.equal(last, within)


@EVERY
def test_texts_are_read_alike_alone_and_among_others(kind: str) -> None:
    made, lengths = model(kind), [67, 1, 30]
    ids = some_ids(sum(lengths))
    with torch.no_grad():
        together = made(ids, Layout.packed(lengths)).split(lengths)
        for part, found in zip(ids.split(lengths), together, strict=True):
            torch.testing.assert_close(made(part, one(len(part))), found, rtol=0, atol=1e-5)


@EVERY
def test_every_weight_has_a_gradient_that_is_right(kind: str) -> None:
    made, ids = model(kind, torch.float64, radius=(1, 2, 2)), some_ids(11)
    weights = dict(made.named_parameters())
    made(ids, one(11)).square().sum().backward()
    written = torch.autograd.grad(written_out(made, ids).square().sum(), list(weights.values()))
    for (name, weight), expected in zip(weights.items(), written, strict=True):
        assert weight.grad is not None, name
        torch.testing.assert_close(weight.grad, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


@EVERY
def test_a_plan_in_the_place_of_the_layout_gives_the_same(kind: str) -> None:
    made, ids, layout = model(kind), some_ids(90), Layout.packed([70, 20])
    with torch.no_grad():
        torch.testing.assert_close(made(ids, made.plan(layout)), made(ids, layout), rtol=0, atol=1e-6)


@EVERY
def test_half_types_come_near(kind: str) -> None:
    made, ids = model(kind), some_ids(90)
    with torch.no_grad():
        exact = made(ids, one(90))
        rough = made.bfloat16()(ids, one(90)).float()
    assert 0 < (rough - exact).norm() < 0.05 * exact.norm()


@EVERY
def test_dropout_is_drawn_in_training_only(kind: str) -> None:
    made, ids = model(kind, dropout=0.3, attention_dropout=0.2, activation_dropout=0.1), some_ids(30)
    assert torch.equal(made(ids, one(30)), made(ids, one(30)))
    made.train()
    assert not torch.equal(made(ids, one(30)), made(ids, one(30)))


def count(sizes: CharLMConfig) -> int:
    with torch.device("meta"), NoInit():
        return new_model(sizes).num_parameters()


def test_the_papers_models_have_as_many_weights_as_theirs() -> None:
    layer = 4 * 512**2 + 512**2 + 2 * 512 * 2048 + 2048 + 512 + 4 * 512
    assert layer == 3_412_480
    for sizes, layers in ((SMALL, 12), (LARGE, 30)):
        rest = 204 * 512 + 204 + 2 * 512  # symbols, their bias, u and v
        assert count(replace(sizes, vocab_size=204)) == layers * layer + rest
    assert count(replace(SMALL, vocab_size=204)) == 41_055_436
    assert count(replace(LARGE, vocab_size=204)) == 102_480_076
    assert count(replace(SMALL, vocab_size=27)) == 41_055_436 - 177 * 513
    assert count(TINY) < 10_000_000


def test_the_papers_windows_grow_with_the_layer() -> None:
    for sizes in (SMALL, LARGE):
        assert (sizes.radii[0], sizes.radii[-1]) == (32, 512)
        assert list(sizes.radii) == sorted(sizes.radii)
    assert round(sum(SMALL.radii) / 12) == 229  # the fixed windows of the ablation are 230
    gaps = [[gap[-1] for gap in sizes.dilations] for sizes in (SMALL, LARGE)]
    assert gaps == [[1] * 6 + [2, 2, 3, 3, 4, 4], [1] * 15 + [2] * 5 + [3] * 5 + [4] * 5]
    assert all(gap.count(1) >= 6 for sizes in (SMALL, LARGE) for gap in sizes.dilations)


@EVERY
def test_other_windows_keep_the_weights(kind: str) -> None:
    made, ids = model(kind), some_ids(50)
    weights = {name: value.clone() for name, value in made.state_dict().items()}
    with torch.no_grad():
        before = made(ids, one(50))
        set_windows(made, (6, 14, 10))
        wider = made(ids, one(50))
        assert config_of(made).dilations == config().dilations
        set_windows(made, (3, 7, 5), (1, 1, 1))
        undilated = made(ids, one(50))
        set_windows(made, (3, 7, 5), config().dilation)  # type: ignore[arg-type]
        again = made(ids, one(50))
    assert torch.equal(again, before)
    assert not torch.equal(wider, before)
    assert not torch.equal(undilated, before)
    assert all(torch.equal(value, weights[name]) for name, value in made.state_dict().items())


@EVERY
def test_segments_with_a_memory_are_read_as_one_text(kind: str) -> None:
    made, ids = model(kind), some_ids(100)
    body = made.backbone
    assert isinstance(body, CharLM)
    with torch.no_grad():
        whole = body(ids, Layout.packed([60, 40])).split([60, 40])
        memory, states = None, []
        for first, second in (((0, 21), (60, 61)), ((21, 50), (61, 90)), ((50, 60), (90, 100))):
            segment = torch.cat([ids[slice(*first)], ids[slice(*second)]])
            layout = Layout.packed([first[1] - first[0], second[1] - second[0]])
            x, memory = read_on(body, segment, layout, memory, keep=20)
            states.append(x.split(layout.lengths.tolist()))
    for document in (0, 1):
        found = torch.cat([state[document] for state in states])
        torch.testing.assert_close(found, whole[document], rtol=0, atol=1e-5)
    assert memory is not None
    assert memory.lengths == (20, 20)


@EVERY
def test_nothing_is_differentiated_through_the_memory_but_its_projections(kind: str) -> None:
    body = model(kind).backbone
    assert isinstance(body, CharLM)
    _, memory = read_on(body, some_ids(9), one(9), keep=9)
    assert not any(state.requires_grad for state in memory.states)
    grads = []
    for checkpointing in (False, True):
        body.gradient_checkpointing = checkpointing
        x, _ = read_on(body, some_ids(5), one(5), memory)
        grads.append(torch.autograd.grad(x.sum(), list(body.parameters())))
    for plain, recomputed in zip(*grads, strict=True):
        torch.testing.assert_close(recomputed, plain, rtol=0, atol=1e-5)


def test_a_memory_of_other_documents_is_refused() -> None:
    body = model().backbone
    assert isinstance(body, CharLM)
    _, memory = read_on(body, some_ids(9), one(9), keep=9)
    with pytest.raises(InputError, match="`memory` must be of 2 documents, as the layout, but is 1"):
        read_on(body, some_ids(9), Layout.packed([4, 5]), memory)


@EVERY
def test_a_model_is_saved_and_read_again(tmp_path: Path, kind: str) -> None:
    made = model(kind, vocab_size=3, alphabet=(97, 98, 122))
    save_model(made, tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text())
    assert raw["model_type"] == "longspan-char-lm"
    assert raw["architectures"] == ["LongspanForCausalLM"]
    loaded = load_model(tmp_path)
    assert not loaded.report
    assert loaded.model.backbone.config == config_of(made)
    ids = some_ids(30, most=3)
    with torch.no_grad():
        assert torch.equal(loaded.model(ids, one(30)), made(ids, one(30)))


def test_a_file_of_another_size_is_refused(tmp_path: Path) -> None:
    save_model(model(), tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text())
    raw["encoder"]["feed_forward"] = 21
    (tmp_path / "config.json").write_text(json.dumps(raw))
    with pytest.raises(CheckpointError, match="the config asks for"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 257}, "`vocab_size` must be at most 256, but is 257"),
        ({"position_type": "absolute"}, "`position_type` must be one of rotary, relative, but is 'absolute'"),
        ({"radius": (1, 2)}, "`radius` must be one number, or one for each of the 3 layers"),
        ({"radius": 0}, "`radius` must be at least 1, but is 0"),
        (
            {"dilation": (1, (1, 2, 3), 1)},
            r"`dilation\[1\]` must be one number, or one for each of the 2 heads",
        ),
        ({"heads": 4}, "`width` must be an even number for each head, but is 12"),
        ({"rope_theta": 0.5}, "`rope_theta` must be from 1 to"),
        ({"alphabet": [97]}, "`alphabet` must be a tuple of bytes"),
        ({"alphabet": (97,)}, "`alphabet` must be 256 different bytes, ascending, but is 1"),
        ({"alphabet": (98, 97), "vocab_size": 2}, "`alphabet` must be 2 different bytes, ascending"),
        ({"alphabet": (300,), "vocab_size": 1}, "`alphabet` must be at most 255, but is 300"),
    ],
)
def test_a_config_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        config(**changes)


def test_bytes_become_ids_and_ids_bytes() -> None:
    closed = config(vocab_size=3, alphabet=(97, 98, 122))
    assert encode(closed, numpy_bytes(b"zab"), "data").tolist() == [2, 0, 1]
    assert decode(closed, [2, 0, 1]) == b"zab"
    assert encode(config(), numpy_bytes(b"\xff\x00"), "data").tolist() == [255, 0]
    assert decode(config(), [255, 0]) == b"\xff\x00"
    message = "`data` must be of the 3 bytes that the model knows, but is '0x00 at 2'"
    with pytest.raises(InputError, match=message):
        encode(closed, numpy_bytes(b"ab\x00z"), "data")
