"""A run: it learns, goes on after whatever stops it, and ends with the same bits."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from longspan.errors import InputError, LongspanError
from longspan.progress import Progress
from longspan.training import checkpoint
from longspan.training.checkpoint import Saving
from longspan.training.config import TrainingConfig
from longspan.training.evaluation import Evaluation, mean_loss
from longspan.training.log import read_log
from longspan.training.loop import train
from longspan.training.memory import forget_peak, peak
from longspan.training.optimizer import Adafactor, AdamW
from longspan.training.report import Report
from longspan.training.schedule import Constant
from longspan.training.step import NotANumber
from longspan.training.weights import Weights
from unit.training.small import Rows, Small, squares

DATA = Rows()


def trained(folder: Path, model: nn.Module | None = None, data: Rows = DATA, **options: Any) -> Report:
    usual: dict[str, Any] = {"epochs": 6, "batch_size": 8, "micro_tokens": 16, "progress": False}
    usual |= {"optimizer": AdamW(lr=1e-2)} | options
    return train(model or Small(), data, squares, out=folder, **usual)


def weights(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


class Stops(Exception):
    """Raised in the middle of a run."""


def stopping(after: int) -> Any:
    """The loss, which fails when it is computed for the nth time."""
    calls = 0

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Any:
        nonlocal calls
        calls += 1
        if calls == after:
            raise Stops
        return squares(model, batch)

    return loss


def test_a_run_learns_and_its_folder_tells_how(tmp_path: Path) -> None:
    evaluation = Evaluation(run=mean_loss(Rows(11), squares), every=0.25)
    report = trained(tmp_path, epochs=40, evaluation=evaluation)
    records = read_log(tmp_path)
    losses = [one["loss"] for one in records if "loss" in one]
    assert len(losses) == report.steps == 120
    assert losses[-1] < losses[0] / 3
    evaluated = [one["step"] for one in records if "eval/loss" in one]
    assert evaluated == [0, 30, 60, 90, 120]
    assert report.metrics["loss"] == min(one["eval/loss"] for one in records if "eval/loss" in one)
    assert report.tokens == 40 * DATA.lengths.sum()
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert (plan["steps"], plan["tokens"], plan["trainable"]) == (120, report.tokens, 50)
    assert (tmp_path / "loss.svg").read_text().startswith("<svg")
    assert "120 steps" in str(report)
    assert json.loads((tmp_path / "report.json").read_text())["steps"] == 120


OPTIONS: list[dict[str, Any]] = [
    {},
    {"optimizer": Adafactor(lr=1e-2), "ema": 0.9},
    {"evaluation": Evaluation(run=mean_loss(Rows(7), squares), every=3), "schedule": Constant()},
    {"steps": 17, "epochs": None, "batch_tokens": 20, "batch_size": None, "max_grad_norm": None},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("after", [2, 9, 17])
def test_a_run_that_was_stopped_ends_with_the_same_bits(
    tmp_path: Path, options: dict[str, Any], after: int
) -> None:
    whole, again = Small(), Small()
    trained(tmp_path / "whole", whole, **options)
    usual: dict[str, Any] = {"epochs": 6, "batch_size": 8, "micro_tokens": 16, "progress": False}
    usual |= {"optimizer": AdamW(lr=1e-2)} | options
    with pytest.raises(Stops):
        train(Small(), DATA, stopping(after), out=tmp_path / "two", saving=Saving(minutes=0), **usual)
    torch.manual_seed(after)  # nothing depends on it
    report = trained(tmp_path / "two", again, **options)
    assert same(whole, again)
    first, second = (read_log(tmp_path / name) for name in ("whole", "two"))
    for record in first + second:
        record.pop("seconds", None)
    assert first == second
    assert report.steps == [one["step"] for one in first][-1]


def test_a_finished_run_gives_its_weights_at_once(tmp_path: Path) -> None:
    whole, again = Small(), Small()
    first = trained(tmp_path, whole)
    assert trained(tmp_path, again) == first
    assert same(whole, again)


def test_the_best_weights_are_taken_and_kept(tmp_path: Path) -> None:
    values = iter([5.0, 1.0, 3.0, 4.0])
    seen = []

    def run(model: nn.Module) -> dict[str, float]:
        assert not model.training
        assert not torch.is_grad_enabled()
        seen.append(weights(model))
        return {"loss": next(values)}

    model = Small().train()
    report = trained(tmp_path, model, evaluation=Evaluation(run=run, every=6))
    assert (report.best_step, report.metrics) == (6, {"loss": 1.0})
    assert all(torch.equal(a, b) for a, b in zip(weights(model), seen[1], strict=True))
    assert model.training
    kept = [path.name for path in checkpoint.checkpoints(tmp_path / "checkpoints")]
    assert kept == ["step-00000006", "step-00000018"]


def test_a_run_stops_early_without_progress(tmp_path: Path) -> None:
    values = iter([0.1, 0.5, 0.4, 0.4, 0.4])
    by: dict[str, Any] = {"every": 2, "metric": "accuracy", "patience": 2}
    evaluation = Evaluation(run=lambda model: {"accuracy": next(values)}, **by)
    report = trained(tmp_path, evaluation=evaluation)
    assert (report.steps, report.best_step, report.stopped_early) == (6, 2, True)
    assert "stopped early" in str(report)


def test_an_unknown_metric_is_told_before_the_first_step(tmp_path: Path) -> None:
    evaluation = Evaluation(run=lambda model: {"loss": 1.0}, metric="f1")
    with pytest.raises(InputError, match="`metric` must be one of loss, but is 'f1'"):
        trained(tmp_path, evaluation=evaluation)
    assert not [one for one in read_log(tmp_path) if "loss" in one]


def test_the_average_of_the_weights_is_evaluated_and_left_in_the_model(tmp_path: Path) -> None:
    seen = []

    def run(model: nn.Module) -> dict[str, float]:
        seen.append(weights(model))
        return {"loss": -float(len(seen))}

    model = Small()
    options: dict[str, Any] = {"epochs": None, "schedule": Constant(), "steps": 3}
    trained(tmp_path / "average", model, ema=0.75, evaluation=Evaluation(run=run, every=1), **options)
    average = weights(Small())
    for steps in (1, 2, 3):
        plain = Small()
        trained(tmp_path / str(steps), plain, **options | {"steps": steps})
        average = [0.75 * a + 0.25 * b for a, b in zip(average, weights(plain), strict=True)]
        for a, b in zip(average, seen[steps], strict=True):
            torch.testing.assert_close(a, b)
    assert all(torch.equal(a, b) for a, b in zip(weights(model), seen[-1], strict=True))


def test_micro_batches_change_nothing_but_rounding(tmp_path: Path) -> None:
    """The loss of a step is divided by its tokens, however they are computed."""
    results = []
    for micro in (1, 16, 1000):
        model = Small(dropout=0.0)
        trained(tmp_path / str(micro), model, micro_tokens=micro)
        results.append(weights(model))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_step_is_that_of_torch(tmp_path: Path) -> None:
    ours, theirs = Small(dropout=0.0), Small(dropout=0.0)
    data = Rows(3)
    options: dict[str, Any] = {"steps": 1, "epochs": None, "schedule": Constant(), "max_grad_norm": 0.1}
    trained(tmp_path, ours, data, **options)
    named = dict(theirs.named_parameters())
    groups = [
        {"params": [p for p in named.values() if p.dim() > 1], "weight_decay": 0.01},
        {"params": [p for p in named.values() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-2)
    x, y = data.batch(torch.arange(3).numpy(), 0)
    ((theirs(x) - y) ** 2).mean().backward()
    torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
    optimizer.step()
    for a, b in zip(weights(ours), weights(theirs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_weights_of_half_types_are_changed_in_float32(tmp_path: Path) -> None:
    """Updates smaller than the rounding of a weight add up."""
    model = Small(dropout=0.0).bfloat16()
    before = weights(model)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Any:
        return squares(model, (batch[0].bfloat16(), batch[1].bfloat16()))

    options: dict[str, Any] = {"epochs": 30, "batch_size": 8, "progress": False, "optimizer": AdamW(lr=1e-4)}
    train(model, DATA, loss, out=tmp_path, **options)
    assert all(p.dtype == torch.bfloat16 for p in model.parameters())
    assert not torch.equal(before[0], weights(model)[0])
    _, stored = checkpoint.load(checkpoint.newest(tmp_path / "checkpoints") or tmp_path)
    assert all(value.dtype == torch.float32 for value in stored["model"].values())


@pytest.mark.parametrize("broken", [(4,), (4, 17)])
def test_a_loss_that_is_no_number_names_its_examples(tmp_path: Path, broken: tuple[int, ...]) -> None:
    with pytest.raises(NotANumber, match=r"The loss of step \d is no number: epoch 0, examples (4|17)\."):
        trained(tmp_path, data=Rows(broken=broken), micro_tokens=1)


@pytest.mark.parametrize("policy", ["skip", "rollback"])
def test_steps_without_a_number_are_left_out(
    tmp_path: Path, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = Small()
    data = Rows(broken=(4, 17))
    report = trained(tmp_path / "whole", model, data, on_nan=policy)
    assert "is no number" in caplog.text
    assert all(bool(p.isfinite().all()) for p in model.parameters())
    assert report.steps == 18
    assert (report.skipped > 5) == (policy == "skip")
    again = Small()
    with pytest.raises(Stops):
        train(
            Small(),
            data,
            stopping(25),
            out=tmp_path / "two",
            saving=Saving(minutes=0),
            epochs=6,
            batch_size=8,
            micro_tokens=16,
            progress=False,
            optimizer=AdamW(lr=1e-2),
            on_nan=policy,
        )
    trained(tmp_path / "two", again, data, on_nan=policy)
    assert same(model, again)


def test_a_run_without_any_number_ends(tmp_path: Path) -> None:
    with pytest.raises(NotANumber):
        trained(tmp_path, data=Rows(broken=tuple(range(23))), on_nan="skip", epochs=30)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"seed": 1}, "seed"),
        ({"epochs": 7}, "epochs"),
        ({"data": Rows(22)}, "examples"),
        ({"ema": 0.5}, "ema"),
    ],
)
def test_another_run_in_the_same_folder_is_refused(
    tmp_path: Path, changes: dict[str, Any], name: str
) -> None:
    trained(tmp_path)
    with pytest.raises(InputError, match=f"`out` must be that of a run whose `{name}` is"):
        trained(tmp_path, **changes)


def test_another_model_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    trained(tmp_path)
    model = Small()
    model.first.requires_grad_(False)
    with pytest.raises(InputError, match="`out` must be that of a run with the same shapes of weights"):
        trained(tmp_path, model)


def test_frozen_weights_do_not_change_and_are_not_stored(tmp_path: Path) -> None:
    model = Small()
    model.first.requires_grad_(False)
    before = model.first.weight.clone()
    trained(tmp_path, model)
    assert torch.equal(model.first.weight, before)
    _, stored = checkpoint.load(checkpoint.newest(tmp_path / "checkpoints") or tmp_path)
    assert "first.weight" not in stored["model"]
    model.requires_grad_(False)
    with pytest.raises(InputError, match="`model` must be with weights that are trained"):
        trained(tmp_path / "none", model)


def test_two_processes_do_not_train_in_one_folder(tmp_path: Path) -> None:
    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Any:
        trained(tmp_path)

    with pytest.raises(LongspanError, match="is being trained in by another process"):
        train(Small(), DATA, loss, out=tmp_path, epochs=1, batch_size=8, progress=False)


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole, again = Small(), Small()
    trained(tmp_path, whole, saving=Saving(minutes=0, keep=3))
    newest = checkpoint.newest(tmp_path / "checkpoints")
    assert newest is not None
    file = newest / "optimizer.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    trained(tmp_path, again)
    assert "it is not the file that was written" in caplog.text
    assert same(whole, again)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": None}, "`steps` must be given, or epochs, but not both, but is 'neither'"),
        ({"steps": 3}, "but is 'both'"),
        ({"lr": 3}, "There is no option `lr`"),
        ({"dtype": "int8"}, "`dtype` must be one of float32, bfloat16"),
        ({"on_nan": "cry"}, "`on_nan` must be one of stop, skip, rollback"),
        ({"max_grad_norm": 0.0}, "`max_grad_norm` must be more than 0"),
        ({"ema": 1.0}, "`ema` must be between 0 and 1"),
        ({"seed": -1}, "`seed` must be at least 0"),
    ],
)
def test_bad_settings_are_told(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        trained(tmp_path, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdamW(lr=0), "`lr` must be more than 0"),
        (lambda: AdamW(lr=math.nan), "`lr` must be more than 0"),
        (lambda: AdamW(weight_decay=-1), "`weight_decay` must be at least 0"),
        (lambda: AdamW(betas=(0.9, 1.0)), "`betas` must be two numbers"),
        (lambda: Evaluation(run=lambda model: {}, every=0), "`every` must be a number of steps"),
        (lambda: Evaluation(run=lambda model: {}, patience=0), "`patience` must be at least 1"),
        (lambda: Saving(keep=0), "`keep` must be at least 1"),
        (lambda: Saving(minutes=-1), "`minutes` must be at least 0"),
    ],
)
def test_bad_values_are_told(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


class Unreached(Small):
    """A model with a layer that no example reaches."""

    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(3, 3)


def test_weights_that_no_step_reaches_stay_as_they_are(tmp_path: Path) -> None:
    model, optimizer = Unreached(), AdamW(lr=1e-2, weight_decay=0.5)
    before = model.other.weight.detach().clone()
    trained(tmp_path, model, optimizer=optimizer)
    assert torch.equal(model.other.weight, before)
    _, stored = checkpoint.load(checkpoint.newest(tmp_path / "checkpoints") or tmp_path)
    assert not [name for name in stored["optimizer"] if name.startswith("other.")]
    trained(tmp_path, model, optimizer=optimizer)  # which takes the checkpoint


def test_gradients_of_half_types_are_summed_in_float32() -> None:
    """Many small ones beside a large one are not lost."""
    model = nn.Linear(1, 1, bias=False).bfloat16()
    weights = Weights(model, TrainingConfig(steps=1, batch_size=1))
    for value in (256.0, *[0.5] * 64):
        model(torch.full((1, 1), value, dtype=torch.bfloat16)).sum().backward()
        weights.collect()
    (gradient,) = weights.gradients
    assert gradient.item() == 288.0
    assert model.weight.grad is None


def test_an_evaluation_after_a_late_checkpoint_stands_in_the_log_once(tmp_path: Path) -> None:
    calls = 0

    def run(model: nn.Module) -> dict[str, float]:
        nonlocal calls
        calls += 1
        return {"loss": float(calls)}  # never better than the first

    evaluation = Evaluation(run=run, every=3)
    with pytest.raises(Stops):
        trained_with(stopping(8), tmp_path, evaluation=evaluation, saving=Saving(minutes=0), steps=9)
    newest = checkpoint.newest(tmp_path / "checkpoints")
    assert newest is not None
    assert checkpoint.step_of(newest) == 6  # saved before its evaluation
    trained_with(squares, tmp_path, evaluation=evaluation, steps=9)
    assert [one["step"] for one in read_log(tmp_path) if "eval/loss" in one] == [0, 3, 6, 9]


def trained_with(loss: Any, folder: Path, **options: Any) -> Report:
    """A run of steps of two examples."""
    return train(Small(), DATA, loss, out=folder, batch_size=2, progress=False, **options)


def test_a_better_evaluation_is_in_the_log_before_its_checkpoint_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = checkpoint.save, []

    def save(*given: Any) -> Path:
        seen.append([one["step"] for one in read_log(tmp_path) if "eval/loss" in one])
        return real(*given)

    monkeypatch.setattr(checkpoint, "save", save)
    trained(tmp_path, evaluation=Evaluation(run=mean_loss(Rows(7), squares), every=9))
    assert seen[0] == [0]


def test_a_rollback_takes_back_its_steps_in_the_log_and_the_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []
    monkeypatch.setattr(Progress, "update", lambda self, count: counted.append(count))
    report = trained(tmp_path, data=Rows(broken=(12,)), on_nan="rollback")
    steps = [one["step"] for one in read_log(tmp_path)]
    assert steps == sorted({*steps})
    assert min(counted) < 0
    assert sum(counted) == report.tokens


def test_the_largest_micro_batch_of_all_steps_is_tried_first(tmp_path: Path) -> None:
    seen = []

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Any:
        seen.append(len(batch[0]))
        return squares(model, batch)

    train(Small(), DATA, loss, out=tmp_path, epochs=3, batch_size=2, micro_tokens=13, progress=False)
    assert seen[0] >= max(seen)


def test_what_is_ahead_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path, progress=None)
    first, second = capsys.readouterr().err.splitlines()[:2]
    tokens = 6 * int(DATA.lengths.sum())
    assert first == f"23 examples, {tokens} tokens in 18 steps of about {round(tokens / 18)}"
    assert re.fullmatch(r"50 weights; about \d\.\d GB, \d+ s", second)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
def test_memory_is_that_of_the_trial_not_of_earlier_work() -> None:
    block = bytearray(b"x") * (1 << 28)
    before = peak()
    del block
    forget_peak()
    assert peak() < before - (1 << 27)
