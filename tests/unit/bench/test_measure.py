import math

import pytest
import torch

from longspan.bench.measure import (
    FEWEST_ROUNDS,
    Run,
    conditions,
    fused,
    measure,
    spread,
    using_threads,
    with_gradients,
)


def counted(calls: list[str], name: str) -> Run:
    return Run(lambda: calls.append(name), amount=100.0)


def test_the_spread_of_values_is_their_median_and_quartiles() -> None:
    result = spread([5.0, 1.0, 4.0, 2.0, 3.0])
    assert (result.median, result.low, result.high) == (3.0, 2.0, 4.0)


def test_the_spread_of_one_value_is_that_value() -> None:
    result = spread([7.0])
    assert (result.median, result.low, result.high) == (7.0, 7.0, 7.0)


def test_runs_take_turns_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.bench.measure.TURN_SECONDS", 0.0)
    calls: list[str] = []
    rounds = measure({"a": counted(calls, "a"), "b": counted(calls, "b")}, rounds=2)
    warm_up = ["a", "a", "b", "b"]
    assert calls == [*warm_up, "a", "b", "a", "b"]
    assert [set(result) for result in rounds] == [{"a", "b"}] * 2


def test_a_run_that_is_not_paired_has_no_sgemm_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.bench.measure.TURN_SECONDS", 0.0)
    (result,) = measure({"a": counted([], "a")}, rounds=1)
    assert math.isnan(result["a"].sgemm)
    assert result["a"].pace == pytest.approx(100.0 / result["a"].seconds)


def test_a_paired_run_stands_between_two_matrix_products(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    class Gemm:
        def pace(self) -> float:
            events.append("sgemm")
            return float(len(events))

    monkeypatch.setattr("longspan.bench.measure.TURN_SECONDS", 0.0)
    monkeypatch.setattr("longspan.bench.measure.Sgemm", Gemm)
    (result,) = measure({"a": counted(events, "a")}, paired=["a"], rounds=1)
    assert events == ["a", "a", "sgemm", "a", "sgemm"]
    assert result["a"].sgemm == (3 + 5) / 2


def test_a_spent_budget_still_leaves_as_many_rounds_as_the_docs_promise() -> None:
    assert len(measure({"a": counted([], "a")}, rounds=9, budget=0.0)) == FEWEST_ROUNDS == 5


def test_conditions_set_threads_and_gradients_and_restore_them() -> None:
    with using_threads(1):
        with conditions(Run(lambda: None, grad=False, threads=2)):
            assert torch.get_num_threads() == 2
            assert not torch.is_grad_enabled()
        assert torch.get_num_threads() == 1
        assert torch.is_grad_enabled()


def test_fused_inputs_are_strided_leaves_of_one_storage() -> None:
    q, k, v = fused(5, 3, heads=2, size=7, grad=True)
    assert q.shape == (5, 2, 7)
    assert q.stride() == (42, 7, 1)
    assert q.untyped_storage().data_ptr() == v.untyped_storage().data_ptr()
    assert k.is_leaf
    assert k.requires_grad


def test_with_gradients_returns_the_output_and_a_gradient_per_input() -> None:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    call = with_gradients(lambda: (a * b,), (a, b), (torch.tensor(10.0),))
    assert [tensor.item() for tensor in call()] == [6.0, 30.0, 20.0]
