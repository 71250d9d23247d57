"""The door: what it lets in, what it refuses and in which words, and what can be seen through the window."""

import pytest
import torch
from torch import Tensor

from longspan.engine import backends
from longspan.engine.backends import BACKENDS, Missing, load, select
from longspan.engine.backends.base import Problem
from longspan.engine.call import attention, attention_weights
from longspan.engine.labels import ClippedDistance
from longspan.engine.plan import plan
from longspan.engine.terms import ScoreTable
from longspan.errors import BackendError, InputError
from longspan.layout import Layout
from longspan.patterns import Causal, Full, GlobalTokens, Window
from oracle import oracle

ROWS = Layout.packed([20, 9], marked=[[0], []])
PATTERN = Window((1, 4)) | GlobalTokens()
PLAN = plan(PATTERN, ROWS, heads=2)


def three(*shape: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.randn(3, *(shape or (29, 2, 4)), generator=torch.Generator().manual_seed(1)).to(dtype)
    return q, k, v


def test_the_scale_is_the_root_of_the_head_size_unless_given() -> None:
    q, k, v = three()
    torch.testing.assert_close(attention(q, k, v, PLAN), attention(q / 2, k, v, PLAN, scale=1))


def test_queries_and_keys_may_be_different_rows() -> None:
    q, k, v = three()
    made = plan(Full(), ROWS.take([3, 25]), ROWS, heads=2)
    torch.testing.assert_close(
        attention(q[[3, 25]], k, v, made), attention(q, k, v, plan(Full(), ROWS, heads=2))[[3, 25]]
    )


def test_out_and_lse_have_the_dtypes_that_are_promised() -> None:
    wide = {torch.float64: torch.float64}
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        out, lse = attention(*three(dtype=dtype), PLAN, return_lse=True)
        assert (out.dtype, lse.dtype) == (dtype, wide.get(dtype, torch.float32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": torch.zeros(29, 8)}, r"`q` must be of shape \(N, H, D\), but is \(29, 8\)"),
        ({"v": torch.zeros(1, 29, 2, 4)}, r"`v` must be of shape \(N, H, D\).* Lay the documents"),
        ({"k": [[1.0]]}, "`k` must be a tensor"),
        (
            {"k": torch.zeros(29, 2, 4).double()},
            r"`k` must be of dtype torch.float32 like `q`.* k.to\(q.dtype\)",
        ),
        ({"v": torch.zeros(29, 2, 4, device="meta")}, "`v` must be on cpu like `q`, but is 'meta'"),
        ({"q": torch.zeros(28, 2, 4)}, "`q` must be of 29 rows like the plan's queries, but is 28"),
        ({"k": torch.zeros(30, 2, 4)}, "`k` must be of 29 rows like the plan's keys, but is 30"),
        ({"q": torch.zeros(29, 3, 4)}, "`q` must be of 2 heads like the plan, but is 3"),
        ({"k": torch.zeros(29, 2, 5)}, "`k` must be of head size 4 like `q`, but is 5"),
        (
            {"k": torch.zeros(29, 3, 4)},
            "`k` must be of heads that divide the 2 of `q`, but is 3",
        ),
        (
            {"k": torch.zeros(29, 0, 4)},
            "`k` must be of heads that divide the 2 of `q`, but is 0",
        ),
        ({"k": torch.zeros(29, 1, 4)}, r"`v` must be of shape \(29, 1, Dv\) like `k`, but is \(29, 2, 4\)"),
        ({"v": torch.zeros(28, 2, 5)}, r"`v` must be of shape \(29, 2, Dv\) like `k`, but is \(28, 2, 5\)"),
        ({"v": torch.zeros(29, 2, 0)}, "`v` must be of head size at least 1, but is 0"),
        ({"softcap": 0.0}, "`softcap` must be a number above 0, but is 0.0. Leave it out for no cap"),
        ({"softcap": float("inf")}, "`softcap` must be a number above 0"),
        ({"softcap": "30"}, "`softcap` must be a number above 0, but is '30'"),
        ({"plan": ROWS}, r"`plan` must be a Plan, but is 'Layout'. Make one: plan\("),
        ({"scale": torch.tensor(1.0)}, "`scale` must be a number"),
        ({"backend": "cuda"}, "`backend` must be one of native, tiled, dense, but is 'cuda'"),
    ],
    ids=str,
)
def test_bad_input_is_refused_with_its_name_and_a_repair(change: dict[str, object], message: str) -> None:
    given = dict(zip("qkv", three(), strict=True)) | {"plan": PLAN} | change
    with pytest.raises(InputError, match=message):
        attention(**given)  # type: ignore[call-overload]


def test_whole_numbers_and_empty_heads_are_refused() -> None:
    with pytest.raises(InputError, match="`q` must be float32, bfloat16, float16 or float64"):
        attention(*three(dtype=torch.int64), PLAN)
    with pytest.raises(InputError, match="head size at least 1"):
        attention(*three(29, 2, 0), PLAN)


def test_a_backend_that_refuses_says_why() -> None:
    big = torch.zeros(1).expand(2**15, 1, 4)
    made = plan(Window(1), Layout.packed([2**15]), heads=1)
    with pytest.raises(BackendError, match="dense: would hold 1073741824 scores at once"):
        attention(big, big, big, made, backend="dense")


def test_every_reason_is_listed_when_no_backend_is_left() -> None:
    q = torch.zeros(29, 2, 4, dtype=torch.complex64)
    with pytest.raises(BackendError, match=r"native: .* tiled: does not know torch.complex64.* dense: "):
        select(Problem(q, q, q, PLAN.arrays, 1.0))


def test_a_backend_that_is_not_installed_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends.BACKENDS, "native", "longspan.engine.backends.nowhere:Native")
    load.cache_clear()
    assert isinstance(load("native"), Missing)
    torch.testing.assert_close(attention(*three(), PLAN), attention(*three(), PLAN, backend="tiled"))
    with pytest.raises(BackendError, match="native: is not installed"):
        attention(*three(), PLAN, backend="native")
    load.cache_clear()


def test_the_first_backend_that_can_is_chosen() -> None:
    q, k, v = three(dtype=torch.float64)
    chosen = select(Problem(q, k, v, PLAN.arrays, 1.0))
    assert chosen.name == next(n for n in BACKENDS if not load(n).refuses(Problem(q, k, v, PLAN.arrays, 1.0)))


def test_weights_are_the_probabilities_of_the_keys_that_are_seen() -> None:
    q, k, v = three()
    rows = [22, 0, 5, 22]
    found = attention_weights(q, k, PLAN, rows)
    out = attention(q, k, v, PLAN)
    for r, row in enumerate(rows):
        for head in range(2):
            seen = PATTERN.head(head).matrix(ROWS)[row].nonzero()[0].tolist()
            count = len(seen)
            assert found.keys[r, head, :count].tolist() == seen
            assert found.keys[r, head, count:].eq(-1).all()
            assert found.positions[r, head, :count].tolist() == ROWS.sites.position[seen].tolist()
            assert not found.probabilities[r, head, count:].any()
            mean = found.probabilities[r, head, :count] @ v[seen, head]
            torch.testing.assert_close(mean, out[row, head])


def test_weights_know_terms_and_scale_and_counts() -> None:
    q, k, v = three()
    made = plan(Causal() + Window(2), ROWS, heads=2, labels=ClippedDistance(4))
    table = ScoreTable(torch.arange(18.0).view(9, 2).sin())
    found = attention_weights(q, k, made, range(29), scale=0.3, terms=[table])
    values = v[found.keys.clamp(min=0), torch.arange(2)[:, None]]  # (R, H, K, D)
    expected, _ = oracle(q, k, v, made.pattern, ROWS, labels=made.labels, scale=0.3, terms=[table])
    torch.testing.assert_close(torch.einsum("rhk,rhkd->rhd", found.probabilities, values), expected)


def test_weights_of_no_rows_are_empty() -> None:
    q, k, _ = three()
    assert attention_weights(q, k, PLAN, []).probabilities.shape == (0, 2, 0)


@pytest.mark.parametrize("rows", [[29], [-1], [0.5], [[0]], torch.ones(29, dtype=torch.bool)], ids=str)
def test_bad_rows_are_refused(rows: list[int]) -> None:
    q, k, _ = three()
    with pytest.raises(InputError, match="`rows` must be"):
        attention_weights(q, k, PLAN, rows)


@pytest.mark.parametrize("backend", [*BACKENDS, None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_result_is_written_to_out(backend: str | None, dtype: torch.dtype) -> None:
    q, k, v = three(dtype=dtype)
    room = torch.full((29, 2, 4), torch.nan, dtype=dtype)
    found = attention(q, k, v, PLAN, backend=backend, out=room)
    assert found is room
    assert torch.equal(room, attention(q, k, v, PLAN, backend=backend))
    again, lse = attention(q, k, v, PLAN, backend=backend, out=room, return_lse=True)
    assert again is room
    assert torch.equal(lse, attention(q, k, v, PLAN, backend=backend, return_lse=True)[1])


def test_out_must_fit_and_have_memory_of_its_own() -> None:
    q, k, v = three()
    with pytest.raises(
        InputError, match=r"`out` must be contiguous and of shape \(29, 2, 4\), but is \(29, 8\)"
    ):
        attention(q, k, v, PLAN, out=torch.empty(29, 8))
    with pytest.raises(InputError, match="`out` must be contiguous"):
        attention(q, k, v, PLAN, out=torch.empty(29, 4, 2).transpose(1, 2))
    with pytest.raises(InputError, match=r"`out` must be of dtype torch.float32 like `q`"):
        attention(q, k, v, PLAN, out=torch.empty(29, 2, 4, dtype=torch.float64))
    for own in (q, k, v):
        with pytest.raises(InputError, match="`out` must have memory of its own, but shares"):
            attention(q, k, v, PLAN, out=own)
    whole = torch.randn(2 * 29, 2, 4)
    attention(whole[:29], k, v, PLAN, out=whole[29:])  # beside each other, not over each other


def test_out_is_refused_where_gradients_are_needed() -> None:
    q, k, v = three()
    with pytest.raises(InputError, match=r"`out` must not be given where gradients are needed.*no_grad"):
        attention(q.requires_grad_(), k, v, PLAN, out=torch.empty(29, 2, 4))
    with torch.no_grad():
        attention(q, k, v, PLAN, out=torch.empty(29, 2, 4))
