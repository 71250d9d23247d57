"""The memory that layers share: nobody who looks sees it being written over."""

from typing import Any

import pytest
import torch
from torch import Tensor

from longspan import native
from longspan.families.modernbert.model import ModernBertConfig
from longspan.layout import Layout
from longspan.nn import encoder, layers
from longspan.nn.rotary import RotaryAttention
from longspan.nn.rows import PAGES, ROWS, own_pages
from unit.families.tiny import body, configs, some_ids

EVERY = pytest.mark.parametrize("name", configs())
LENGTHS = [67, 1, 30]


def inputs() -> tuple[Tensor, Layout]:
    return some_ids(sum(LENGTHS)), Layout.packed(LENGTHS, marked=[[0], [0], []])


@EVERY
def test_what_hooks_see_stays_as_it_was(name: str) -> None:
    model = body(configs()[name])
    ids, layout = inputs()
    seen: list[Tensor] = []
    watched = [model.embeddings, *model.layers]
    hooks = [part.register_forward_hook(lambda _, __, y: seen.append(y)) for part in watched]
    with torch.no_grad():
        result = model(ids, layout)
    found, seen[:] = list(seen), []
    wanted = model(ids, layout).detach()  # where gradients are kept, nothing is written over
    for hook in hooks:
        hook.remove()
    assert len(found) == len(seen) == len(watched)
    for one, other in zip(found, seen, strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(result, wanted)
    with torch.no_grad():
        torch.testing.assert_close(model(ids, layout), wanted)


@EVERY
@torch.no_grad()
def test_a_result_is_not_written_over_by_the_next_call(name: str) -> None:
    model = body(configs()[name])
    ids, layout = inputs()
    first = model(ids, layout)
    copy = first.clone()
    second = model(ids.flip(0), layout)
    assert torch.equal(first, copy)
    assert first.data_ptr() != second.data_ptr()


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", ["modernbert", "biased modernbert", "grouped", "nomic", "jina v3"])
def test_layers_that_write_over_their_input_change_nothing(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = body(configs()[name]).to(dtype)
    ids, layout = inputs()
    rows = torch.tensor([0, 97, 40, 40, 3])
    wanted, wanted_rows = model(ids, layout), model(ids, layout, rows=rows)
    for module in (encoder, layers):
        monkeypatch.setattr(module, "ROWS", 64)
    exact = native.serves_linear(torch.float32)  # torch's products of some rows alone differ in the last bits
    most = 1e-13 if dtype == torch.float64 else 0.0 if exact else 2e-6
    torch.testing.assert_close(model(ids, layout), wanted, rtol=0.0, atol=most)
    torch.testing.assert_close(model(ids, layout, rows=rows), wanted_rows, rtol=0.0, atol=most)


@torch.no_grad()
def test_which_layers_write_over_their_input(monkeypatch: pytest.MonkeyPatch) -> None:
    model = body(configs()["modernbert"])
    ids, layout = inputs()
    monkeypatch.setattr(layers, "ROWS", 64)
    monkeypatch.setattr(encoder, "ROWS", 64)
    done: list[int] = []
    plainly = RotaryAttention.of_queries

    def counted(self: RotaryAttention, x: Tensor, *rest: Any) -> Tensor:
        done.append(len(x))
        return plainly(self, x, *rest)

    monkeypatch.setattr(RotaryAttention, "of_queries", counted)
    model(ids, layout)
    assert done == [64, 34] * len(model.layers)  # 67, 1 and 30 rows: tiles are not cut
    done.clear()
    hook = model.layers[1].get_submodule("attention").register_forward_hook(lambda *_: None)
    model(ids, layout)
    hook.remove()
    model(ids[:64], Layout.packed([64]))
    model.train()(ids, layout)
    assert done == []


@torch.no_grad()
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_result_holds_its_own_memory_alone(depth: int) -> None:
    config = ModernBertConfig(vocab_size=99, width=32, layers=depth, heads=2, feed_forward=40)
    model = config.backbone().eval()
    length = 2 * ROWS + 3
    result = model(torch.arange(length) % 99, Layout.packed([length]))
    assert result.untyped_storage().nbytes() == result.nbytes


@torch.no_grad()
@pytest.mark.parametrize("count", [0, 2, 3000])
def test_rows_that_are_asked_for_may_be_few_or_many(count: int) -> None:
    model = body(configs()["modernbert"])
    ids, layout = inputs()
    rows = torch.arange(count) % len(ids)
    torch.testing.assert_close(model(ids, layout, rows=rows), model(ids, layout)[rows])


def test_large_tensors_have_pages_of_their_own() -> None:
    like = torch.zeros(1, dtype=torch.bfloat16)
    room = own_pages(like, PAGES // 4, 2)
    assert (room.shape, room.dtype) == ((PAGES // 4, 2), torch.bfloat16)
    assert room.fill_(2).sum(dtype=torch.float64) == PAGES
    assert own_pages(like, 0, 5).shape == (0, 5)
    assert own_pages(like.to("meta"), PAGES).device.type == "meta"
