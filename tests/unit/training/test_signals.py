"""Ctrl-C and SIGTERM at bad moments: the run ends cleanly, and the next one ends with the same bits."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn

from longspan.training import checkpoint, loop
from longspan.training import weights as weights_module
from longspan.training.evaluation import Evaluation, mean_loss
from longspan.training.interrupt import Interrupted, Signals
from longspan.training.log import read_log
from longspan.training.optimizer import AdamW
from longspan.training.ranks import shared
from longspan.training.run import Run
from unit.training.small import Rows, Small, squares
from unit.training.test_run import DATA, same, trained

LATE = 12
"""An example of the last step of the first epoch."""


def at_call(number: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, in whose nth call Ctrl-C is pressed."""
    calls = 0

    def call(*given: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            signal.raise_signal(signal.SIGINT)
        return real(*given, **options)

    return call


def assert_the_same_run(folder: Path, data: Rows = DATA, **options: Any) -> None:
    """A run that was stopped in `folder` and goes on is one that was not."""
    whole, again = Small(), Small()
    trained(folder.parent / "whole", whole, data, **options)
    trained(folder, again, data, **options)
    assert same(whole, again)
    first, second = (read_log(one) for one in (folder.parent / "whole", folder))
    for record in first + second:
        record.pop("seconds", None)
    assert first == second


@pytest.mark.parametrize("call", [3, 8, 11, 15])  # taking the average, and giving back, at 2 evaluations
def test_a_signal_while_averaged_weights_are_swapped_leaves_no_mixture(
    tmp_path: Path, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"ema": 0.5, "optimizer": AdamW(lr=1e-1)}
    options["evaluation"] = Evaluation(run=mean_loss(Rows(7), squares), every=4)
    with monkeypatch.context() as patch:
        patch.setattr(weights_module, "shared", at_call(call + 24, shared))
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "run", **options)
    assert checkpoint.newest(tmp_path / "run/checkpoints") is not None
    assert_the_same_run(tmp_path / "run", **options)


@pytest.mark.parametrize("call", [1, 4, 6])
def test_a_signal_while_a_run_is_rolled_back_leaves_no_mixture(
    tmp_path: Path, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"on_nan": "rollback", "optimizer": AdamW(lr=1e-1)}
    data = Rows(broken=(LATE,))
    with monkeypatch.context() as patch:
        patch.setattr(weights_module, "shared", at_call(call, shared))
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "run", data=data, **options)
    assert_the_same_run(tmp_path / "run", data, **options)


@pytest.mark.parametrize("place", ["planned", "RunLog"])
def test_a_signal_before_the_first_step_ends_the_run_cleanly(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(loop, place, at_call(1, getattr(loop, place)))
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "run")
    assert_the_same_run(tmp_path / "run")


def test_a_signal_during_the_final_save_is_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Run, "save", at_call(1, Run.save))
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "run")
    newest = checkpoint.newest(tmp_path / "run/checkpoints")
    assert newest is not None
    assert checkpoint.load(newest)[0].finished
    assert_the_same_run(tmp_path / "run")


def test_a_model_that_was_stopped_goes_on_as_it_is(tmp_path: Path) -> None:
    """As in a notebook, where the cell is run again."""
    whole, model = Small(), Small()
    calls = 0

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Any:
        nonlocal calls
        calls += 1
        if calls == 9:
            signal.raise_signal(signal.SIGINT)
        return squares(model, batch)

    options: dict[str, Any] = {"epochs": 6, "batch_size": 8, "micro_tokens": 16, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        loop.train(model, DATA, loss, out=tmp_path / "run", **options)
    assert not same(model, Small())
    loop.train(model, DATA, squares, out=tmp_path / "run", **options)
    loop.train(whole, DATA, squares, out=tmp_path / "whole", **options)
    assert same(whole, model)


def test_signals_after_the_first_are_only_noted() -> None:
    signals = Signals()
    with pytest.raises(Interrupted):
        signals.receive(signal.SIGINT, None)
    signals.receive(signal.SIGTERM, None)
    assert signals.came == signal.SIGTERM
