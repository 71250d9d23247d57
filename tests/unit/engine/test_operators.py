"""The operators: registered as torch wants them, differentiable once, compiled once for all lengths."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from longspan.engine.backends.base import Problem
from longspan.engine.call import attention
from longspan.engine.dropout import Dropout
from longspan.engine.labels import ClippedDistance
from longspan.engine.operators import attend
from longspan.engine.plan import Plan, PlanArrays, plan
from longspan.engine.terms import RelativeKeys, ScoreTable
from longspan.errors import BackendError, InputError
from longspan.layout import Layout
from longspan.patterns import Causal, GlobalTokens, Window

HEADS, KEY_HEADS, SIZE, VALUE_SIZE, LIMIT = 4, 2, 3, 7, 4


def plan_of(length: int) -> Plan:
    rows = Layout.packed([length, 5], marked=[[0], []])
    return plan(Window(4) | GlobalTokens(), rows, heads=HEADS, labels=ClippedDistance(LIMIT))


def random(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    chance = torch.Generator().manual_seed(len(shape))
    return torch.randn(shape, generator=chance).to(dtype).requires_grad_()


def problem(length: int = 70, dtype: torch.dtype = torch.float32, dropout: float = 0.3) -> Problem:
    q, k = (random(length + 5, heads, SIZE, dtype=dtype) for heads in (HEADS, KEY_HEADS))
    v = random(length + 5, KEY_HEADS, VALUE_SIZE, dtype=dtype)
    labels = 2 * LIMIT + 1
    relative, content = random(labels, HEADS, SIZE, dtype=dtype), random(HEADS, SIZE, dtype=dtype)
    table, seed = random(labels, HEADS, dtype=dtype), torch.tensor(11) if dropout else None
    arrays = plan_of(length).arrays
    return Problem(q, k, v, arrays, SIZE**-0.5, relative, content, table, dropout, seed, 1.5)


def leaves(given: Problem) -> list[Tensor]:
    """What can be differentiated."""
    tensors = (given.q, given.k, given.v, given.relative, given.content, given.table)
    return [x for x in tensors if x is not None]


def arguments(given: Problem, backend: str = "tiled") -> tuple[Any, ...]:
    return (*given[:3], list(given.arrays), *given[4:], backend)


@pytest.mark.parametrize("backend", ["", "tiled", "dense"])
def test_opcheck_finds_nothing_to_complain_of(backend: str) -> None:
    torch.library.opcheck(torch.ops.longspan.attend, arguments(problem(), backend))
    plain = problem(dropout=0.0)._replace(relative=None, content=None, table=None, softcap=None)
    torch.library.opcheck(torch.ops.longspan.attend, arguments(plain, backend))


def test_opcheck_finds_nothing_to_complain_of_in_the_backward_operator() -> None:
    given = arguments(problem())
    with torch.no_grad():
        out, lse = torch.ops.longspan.attend(*given)
    upstream = torch.randn_like(out), torch.randn_like(lse)
    tests = ("test_schema", "test_faketensor")  # the others would differentiate it
    torch.library.opcheck(torch.ops.longspan.attend_backward, (*upstream, out, lse, *given), test_utils=tests)


@pytest.mark.parametrize("backend", ["tiled", "dense"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_agree_with_differences(backend: str, dropout: float) -> None:
    given = problem(9, torch.float64, dropout)

    def run(q: Tensor, k: Tensor, v: Tensor, *terms: Tensor) -> tuple[Tensor, Tensor]:
        relative, content, table = terms
        fresh = given._replace(q=q, k=k, v=v, relative=relative, content=content, table=table)
        return attend(fresh, backend)

    assert torch.autograd.gradcheck(run, leaves(given), fast_mode=True)


@pytest.mark.parametrize("by_operator", [False, True])
def test_a_second_derivative_is_refused_clearly(by_operator: bool) -> None:
    given = problem()
    run = torch.ops.longspan.attend(*arguments(given)) if by_operator else attend(given, "tiled")
    (grad,) = torch.autograd.grad(run[0].sum(), given.q, create_graph=True)
    with pytest.raises(BackendError, match="differentiated once"):
        grad.sum().backward()


def test_the_operator_and_the_short_way_give_the_same() -> None:
    given = problem()
    inputs = leaves(given)
    pairs = torch.ops.longspan.attend(*arguments(given)), attend(given, "tiled")
    assert all(torch.equal(a, b) for a, b in zip(*pairs, strict=True))
    upstream = tuple(torch.randn_like(x) for x in pairs[0])
    grads = [torch.autograd.grad(pair, inputs, upstream) for pair in pairs]
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True))


def test_only_one_of_the_results_may_be_differentiated() -> None:
    given = problem(dropout=0.0)
    for which in (0, 1):
        (found,) = torch.autograd.grad(attend(given, "tiled")[which].sum(), given.q)
        (expected,) = torch.autograd.grad(attend(given, "dense")[which].sum(), given.q)
        torch.testing.assert_close(found, expected)


def test_fake_tensors_pass_without_computing() -> None:
    made = plan_of(70)
    with FakeTensorMode(allow_non_fake_inputs=True):
        q, k = (torch.empty(75, heads, SIZE, dtype=torch.bfloat16) for heads in (HEADS, KEY_HEADS))
        v = torch.empty(75, KEY_HEADS, VALUE_SIZE, dtype=torch.bfloat16)
        out, lse = attention(q, k, v, made, softcap=20.0, return_lse=True)
    assert (tuple(out.shape), out.dtype) == ((75, HEADS, VALUE_SIZE), torch.bfloat16)
    assert (tuple(lse.shape), lse.dtype) == ((75, HEADS), torch.float32)


@pytest.mark.parametrize("backend", [None, "tiled", "dense"])
def test_autocast_changes_nothing_inside(backend: str | None) -> None:
    given = problem(dtype=torch.bfloat16, dropout=0.0)
    plain = attend(given, backend)
    with torch.autocast("cpu", torch.bfloat16):
        for found, expected in zip(attend(given, backend), plain, strict=True):
            assert torch.equal(found, expected)


@pytest.mark.parametrize("backend", [None, "tiled", "dense"])
def test_autocast_changes_nothing_where_nothing_is_differentiated(backend: str | None) -> None:
    q, k, v = (random(75, HEADS, SIZE, dtype=torch.float32).detach() for _ in "qkv")
    expected = attention(q, k, v, plan_of(70), backend=backend)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(attention(q, k, v, plan_of(70), backend=backend), expected)


def test_a_mode_that_watches_operators_sees_one() -> None:
    given = problem(dropout=0.0)

    counter = FlopCounterMode(display=False, custom_mapping={torch.ops.longspan.attend: lambda *_, **__: 2})
    with counter, torch.no_grad():
        attend(given)
    assert counter.get_total_flops() == 2


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.vmap])
def test_function_transforms_are_refused_rather_than_misread(transform: Callable[..., Any]) -> None:
    made = plan_of(70)

    def loss(x: Tensor) -> Tensor:
        return attention(x, x, x, made).sum()

    with pytest.raises(RuntimeError, match=r"longspan|functorch"):
        transform(loss)(
            random(75, HEADS, SIZE) if transform is torch.func.grad else random(2, 75, HEADS, SIZE)
        )


def compiled(backend: str, dynamic: bool | None) -> tuple[Callable[..., Tensor], Any]:
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)

    def layer(q: Tensor, k: Tensor, v: Tensor, made: Plan) -> Tensor:
        return attention(q.sin(), k, v, made).cos()

    return torch.compile(layer, fullgraph=True, backend=counter, dynamic=dynamic), counter


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [None, True])
def test_a_new_length_is_new_data_not_a_new_graph(backend: str, dynamic: bool | None) -> None:
    layer, counter = compiled(backend, dynamic)
    for length in (130, 200, 333, 71, 640, 97):
        rows = Layout.packed([length, 40], marked=[[0], []])
        made = plan(Window(9) | GlobalTokens(), rows, heads=HEADS)
        shapes = (HEADS, SIZE), (KEY_HEADS, SIZE), (KEY_HEADS, VALUE_SIZE)
        q, k, v = (random(length + 40, *shape, dtype=torch.float32) for shape in shapes)
        found = layer(q, k, v, made)
        expected = attention(q.sin(), k, v, made).cos()
        torch.testing.assert_close(found, expected)
        grads = (torch.autograd.grad(x.sum(), (q, k, v)) for x in (found, expected))
        torch.testing.assert_close(*grads)
    assert counter.frame_count <= 2  # the second length may teach it that lengths vary


def test_another_pattern_is_new_data_too() -> None:
    layer, counter = compiled("eager", True)
    q, k, v = (random(200, HEADS, SIZE, dtype=torch.float32) for _ in "qkv")
    for pattern in (Window(9), Causal(), Window(70, dilation=2), Window(5), Window(30)):
        made = plan(pattern, Layout.packed([200]), heads=HEADS)
        torch.testing.assert_close(layer(q, k, v, made), attention(q.sin(), k, v, made).cos())
    assert counter.frame_count <= 2  # the second may teach it that two sizes were equal by chance


def test_terms_and_a_seed_tensor_compile() -> None:
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")

    @torch.compile(fullgraph=True, backend=counter)
    def layer(q: Tensor, relative: Tensor, table: Tensor, seed: Tensor, made: Plan) -> Tensor:
        terms = RelativeKeys(relative), ScoreTable(table)
        return attention(q, q, q, made, terms=terms, dropout=Dropout(0.2, seed))

    given, made = problem(), plan_of(70)
    q, _, _, relative, _, table = leaves(given)
    for seed in (1, 2, 3):
        number = torch.tensor(seed)
        found = layer(q, relative, table, number, made)
        same = given._replace(k=q, v=q, content=None, dropout=0.2, seed=number, softcap=None)
        torch.testing.assert_close(found, attend(same)[0])
    assert counter.frame_count == 1


def test_a_plan_made_in_inference_mode_can_be_trained_with() -> None:
    with torch.inference_mode():
        made = plan(Window(3), Layout.packed([77]), heads=HEADS)
    q = random(77, HEADS, SIZE)
    (found,) = torch.autograd.grad(attention(q, q, q, made).square().sum(), q)
    (expected,) = torch.autograd.grad(attention(q, q, q, made, backend="dense").square().sum(), q)
    assert found.any()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", PlanArrays._fields)
def test_an_operator_refuses_arrays_that_do_not_fit(name: str) -> None:
    made = plan(Window(3), Layout.packed([70]), heads=2, labels=ClippedDistance(2))
    arrays = made.arrays._replace(**{name: getattr(made.arrays, name)[None]})
    x = torch.zeros(70, 2, 8)
    with pytest.raises(InputError, match=f"`{name}` must be a contiguous"):
        torch.ops.longspan.attend(x, x, x, list(arrays), 1.0, None, None, None, 0.0, None, None, "")


def test_an_operator_refuses_rows_that_do_not_exist() -> None:
    made = plan(Window(3), Layout.packed([70]), heads=2)
    arrays = made.arrays._replace(k_rows=made.arrays.k_rows + 70)
    x = torch.zeros(70, 2, 8)
    with pytest.raises(ValueError, match="names a key that does not exist"):
        torch.ops.longspan.attend(x, x, x, list(arrays), 1.0, None, None, None, 0.0, None, None, "native")
