"""Models inside graphs: compiled in default mode, and whole with a plan; exported with either."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils import _pytree as pytree

from longspan.engine.packed import pack, unpack
from longspan.engine.plan import plan
from longspan.errors import InputError
from longspan.families.bert.model import BertConfig
from longspan.families.etc.model import EtcConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.registry import FAMILIES
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.families.stitched.model import StitchedConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.patterns import GlobalTokens, Window
from longspan.tasks.registry import build
from unit.families.tiny import SIZES, some_ids

SMALL = SIZES | {"layers": 1}
LENGTHS = ([130, 77], [200, 40], [71, 30, 9])
CONFIGS: dict[str, Any] = {
    **{family.name: family.config(**SMALL) for family in FAMILIES if family.name != "Stitched"},
    "Longformer": LongformerConfig(**SMALL, radius=5, buckets=32),
    "Poolingformer": PoolingformerConfig(**SMALL, radius=5, wide_radius=20),
    "Stitched": StitchedConfig(**SMALL, stitching=1),
}
DECODER: dict[str, Any] = {"layers": 1, "heads": 2, "feed_forward": 8, "positions": 300}
LED = Seq2SeqConfig(encoder=LongformerConfig(**SMALL, radius=5, token_types=0), **DECODER)
KINDS = list({type(config): name for name, config in CONFIGS.items()}.values())
"""One of each class: others differ in nothing that is computed."""


def compiled(
    model: torch.nn.Module, *, fullgraph: bool = True, dynamic: bool | None = True
) -> tuple[Any, Any]:
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("eager")
    return torch.compile(model, fullgraph=fullgraph, dynamic=dynamic, backend=counter), counter


def gradients(model: TaskModel, loss: Tensor) -> list[Tensor]:
    parameters = [p for p in model.parameters() if p.requires_grad]
    return list(torch.autograd.grad(loss, parameters))


@pytest.mark.parametrize("name", KINDS)
def test_a_model_with_a_plan_is_one_graph_for_all_lengths(name: str) -> None:
    model = build(CONFIGS[name], "classify").eval()
    graph, counter = compiled(model)
    for lengths in LENGTHS:
        ids, layout = some_ids(sum(lengths)), Layout.packed(lengths)
        found, expected = graph(ids, model.plan(layout)), model(ids, layout)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(gradients(model, found.sum()), gradients(model, expected.sum()))
    assert counter.frame_count == 1


@pytest.mark.parametrize("task", ["classify", "encode"])
def test_a_model_compiles_in_default_mode(task: str) -> None:
    model = build(CONFIGS["Longformer"], task).eval()
    graph, counter = compiled(model, fullgraph=False, dynamic=None)
    for lengths in LENGTHS:
        ids, layout = some_ids(sum(lengths)), Layout.packed(lengths)
        with torch.no_grad():
            torch.testing.assert_close(graph(ids, layout), model(ids, layout))
    assert 1 <= counter.frame_count <= 2  # the second length teaches it that ids vary


@pytest.mark.parametrize("task", ["classify", "summarize"])
def test_decoders_compile_too(task: str) -> None:
    model = build(LED, task).eval()
    graph, counter = compiled(model)
    for lengths in LENGTHS:
        ids, layout = some_ids(sum(lengths)), Layout.packed(lengths)
        if isinstance(model, Seq2SeqLM):
            words, texts = some_ids(2 * len(lengths)), Layout.packed([2] * len(lengths))
            found, expected = graph(ids, model.plan(layout, texts), words), model(ids, layout, words, texts)
        else:
            found, expected = graph(ids, model.plan(layout)), model(ids, layout)
        torch.testing.assert_close(found, expected)
    assert counter.frame_count == 1


@pytest.mark.parametrize("pooling", ["mean", "max", "first", "sif"])
def test_vectors_are_pooled_alike_inside_a_graph(pooling: str) -> None:
    config = StitchedConfig(**SMALL, stitching=1, sif_weights=True)
    model = build(config, "encode", pooling=pooling).eval()
    model.head.get_parameter("sif.weight").data.abs_()
    mask = torch.arange(40) < torch.tensor([[40], [7], [23]])
    for layout in (Layout.packed([130, 1, 77]), Layout.padded(mask.numpy())):
        ids = some_ids(layout.size)
        with torch.no_grad():
            torch.testing.assert_close(model(ids, model.plan(layout)), model(ids, layout))


def test_a_layout_without_a_plan_in_a_whole_graph_is_told_what_to_do() -> None:
    model = build(CONFIGS["Bert"], "classify").eval()
    graph, _ = compiled(model)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"model.plan\(layout\)"):
        graph(some_ids(9), Layout.packed([9]))


def test_dropout_is_drawn_anew_in_each_call_of_a_graph() -> None:
    changes: dict[str, Any] = {"dropout": 0.0, "attention_dropout": 0.3}
    model = build(BertConfig(**SMALL | changes), "tag").train()
    graph, counter = compiled(model)
    ids, made = some_ids(90), model.plan(Layout.packed([60, 30]))
    assert not torch.equal(graph(ids, made), graph(ids, made))
    torch.manual_seed(3)
    found = graph(ids, made)
    torch.manual_seed(3)
    torch.testing.assert_close(found, model(ids, Layout.packed([60, 30])))  # a graph has torch's products
    assert counter.frame_count == 1


@pytest.mark.parametrize("config", [LongformerConfig(**SMALL, radius=5), EtcConfig(**SMALL, radius=5)])
def test_an_exported_model_takes_other_lengths_as_plans(config: Any) -> None:
    model = build(config, "classify").eval()
    ids, made = some_ids(207), model.plan(Layout.packed([130, 77]))
    shapes: Any = torch.export.ShapesCollection()
    for leaf in pytree.tree_leaves((ids, made)):
        if isinstance(leaf, Tensor):
            shapes[leaf] = {0: torch.export.Dim.AUTO}
    with torch.no_grad():
        program = torch.export.export(model, (ids, made), dynamic_shapes=shapes).module()
        other, layout = some_ids(260), Layout.packed([150, 50, 60])
        torch.testing.assert_close(program(other, model.plan(layout)), model(other, layout))


def test_an_exported_model_takes_a_layout_as_a_constant() -> None:
    model = build(CONFIGS["Longformer"], "classify").eval()
    ids, lengths = some_ids(207), [130, 77]
    with torch.no_grad():
        program = torch.export.export(model, (ids, Layout.packed(lengths))).module()
        expected = model(ids, Layout.packed(lengths))
        torch.testing.assert_close(program(ids, Layout.packed(lengths)), expected)
        with pytest.raises((ValueError, RuntimeError)):
            program(ids, Layout.packed([77, 130]))


def test_a_packed_plan_holds_all_arrays_and_refuses_what_does_not() -> None:
    made = plan(Window(9) | GlobalTokens(), Layout.packed([130, 1], marked=[[0], []]), heads=2)
    packed = pack(made)
    for array, found in zip(made.arrays, packed.arrays(), strict=True):
        assert torch.equal(array, found)
        assert not found.numel() or (found.data_ptr() - packed.buffer.data_ptr()) % 64 == 0
    for wrong in (packed.buffer[:-8], packed.buffer[:5], packed.buffer.int(), packed.buffer - 1):
        with pytest.raises(InputError, match="`plan` must be"):
            unpack(wrong)


def test_nothing_of_the_compiler_is_imported_until_something_is_compiled() -> None:
    script = "import sys; import longspan.loading; raise SystemExit('torch._dynamo' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor's own
def test_inductor_compiles_a_model_and_its_gradients() -> None:
    torch._dynamo.reset()
    model = build(CONFIGS["Longformer"], "classify").eval()
    graph = torch.compile(model, fullgraph=True)
    for lengths in LENGTHS:
        ids, layout = some_ids(sum(lengths)), Layout.packed(lengths)
        found, expected = graph(ids, model.plan(layout)), model(ids, layout)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        pairs = zip(gradients(model, found.sum()), gradients(model, expected.sum()), strict=True)
        for a, b in pairs:
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
