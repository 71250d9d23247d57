"""Training in phases: it learns, goes on where it was, hands weights on, and refuses another run's folder."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from longspan.checkpoints.save import save_model
from longspan.errors import CheckpointError, InputError
from longspan.families.char_lm.model import config_of, new_model
from longspan.families.task_model import TaskModel
from longspan.recipes.char_lm import train as module
from longspan.recipes.char_lm.load import load_char_lm
from longspan.recipes.char_lm.phases import RECIPES, Phase, Recipe, recipe_named
from longspan.recipes.char_lm.train import METRIC, Settings, train_char_lm
from longspan.recipes.char_lm.windows import WindowBatch, next_byte_loss
from longspan.training import loop
from longspan.training.report import Report
from longspan.training.source import Loss
from unit.families.char_lm import config
from unit.tasks.tiny import reader

TEXT = b"".join(b"%d times %d is %d. " % (a, b, a * b) for a in range(1, 20) for b in range(1, 12))


def recipe(steps: int = 3, **changes: Any) -> Recipe:
    """Two phases of a model as small as can be."""
    phases = (
        Phase(length=64, radius=(3, 7, 5), lr=1e-2, batch=4, steps=steps),
        Phase(length=128, radius=(6, 14, 10), lr=5e-3, batch=2, steps=steps, end=0.0),
    )
    sizes: dict[str, Any] = {"weight_decay": 0.0, "max_grad_norm": 1.0, "eval_characters": 200}
    return Recipe(config=config(**changes), phases=phases, **sizes)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT)
    return path


@pytest.mark.parametrize("kind", ["rotary", "relative"])
def test_a_few_kilobytes_are_learnt_in_seconds(data: Path, tmp_path: Path, kind: str) -> None:
    sizes: dict[str, Any] = {"width": 32, "feed_forward": 64, "dilation": 1, "radius": (8, 16, 32)}
    phase = Phase(length=128, radius=(8, 16, 32), lr=1e-2, batch=8, steps=60, end=0.0)
    quick = replace(recipe(position_type=kind, **sizes), phases=(phase,))
    settings = Settings(vocabulary="data")
    _, (report,) = train_char_lm(quick, data, tmp_path / "run", settings, progress=False)
    assert report.loss is not None
    log = [json.loads(line) for line in (tmp_path / "run/phase-1/log.jsonl").read_text().splitlines()]
    first = next(record for record in log if METRIC in str(record))
    assert first[f"eval/{METRIC}"] > 4
    assert report.metrics[METRIC] < 2


def test_each_phase_begins_with_the_best_weights_of_the_one_before(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[tuple[int, ...], dict[str, torch.Tensor]]] = []
    real = loop.train

    def spy(model: TaskModel, *rest: Any, **options: Any) -> Report:
        weights = {name: value.clone() for name, value in model.state_dict().items()}
        seen.append((config_of(model).radii, weights))
        report = real(model, *rest, **options)
        seen.append((config_of(model).radii, {name: v.clone() for name, v in model.state_dict().items()}))
        return report

    monkeypatch.setattr(module, "train", spy)
    model, reports = train_char_lm(recipe(), data, tmp_path / "run", progress=False)
    assert [radii for radii, _ in seen] == [(3, 7, 5)] * 2 + [(6, 14, 10)] * 2
    (_, after), (_, before) = seen[1:3]
    assert all(torch.equal(after[name], before[name]) for name in after)
    assert len(reports) == 2
    loaded = load_char_lm(tmp_path / "run")
    assert config_of(loaded).radii == (6, 14, 10)
    assert all(torch.equal(p, q) for p, q in zip(loaded.parameters(), model.parameters(), strict=True))


class Stopped(Exception):
    """Stands for a kill."""


def test_a_run_that_was_stopped_ends_with_the_same_bits(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropping = recipe(dropout=0.3, attention_dropout=0.2)
    whole, _ = train_char_lm(dropping, data, tmp_path / "whole", progress=False)
    calls = 0

    def once(model: torch.nn.Module, batch: WindowBatch) -> Loss:
        nonlocal calls
        calls += 1
        if calls == 6:  # in the second phase
            raise Stopped
        return next_byte_loss(model, batch)

    monkeypatch.setattr(module, "next_byte_loss", once)
    with pytest.raises(Stopped):
        train_char_lm(dropping, data, tmp_path / "cut", progress=False)
    assert load_char_lm(tmp_path / "cut")  # what the first phase made
    again, _ = train_char_lm(dropping, data, tmp_path / "cut", progress=False)
    assert all(torch.equal(p, q) for p, q in zip(again.parameters(), whole.parameters(), strict=True))
    calls = 100
    done, reports = train_char_lm(dropping, data, tmp_path / "cut", progress=False)
    assert calls == 100
    assert [report.steps for report in reports] == [3, 3]
    assert all(torch.equal(p, q) for p, q in zip(done.parameters(), whole.parameters(), strict=True))


def test_a_model_of_an_earlier_phase_never_takes_the_place_of_a_later_one(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    whole, _ = train_char_lm(recipe(), data, out, progress=False)
    saved: list[Path] = []

    def save(model: TaskModel, folder: Path) -> None:
        saved.append(folder)
        save_model(model, folder)

    monkeypatch.setattr(module, "save_model", save)
    train_char_lm(recipe(), data, out, progress=False)
    assert len(saved) == 1
    found = load_char_lm(out)
    assert all(torch.equal(p, q) for p, q in zip(found.parameters(), whole.parameters(), strict=True))
    (out / "config.json").unlink()
    train_char_lm(recipe(), data, out, progress=False)
    assert config_of(load_char_lm(out)).radii == (6, 14, 10)


def test_a_model_that_is_no_run_is_not_replaced(data: Path, tmp_path: Path) -> None:
    save_model(new_model(config()), tmp_path / "model")
    with pytest.raises(InputError, match="`out` must be a new folder, or that of a run"):
        train_char_lm(recipe(), data, tmp_path / "model", progress=False)
    assert not (tmp_path / "model/recipe.json").exists()


def test_minutes_are_turned_into_steps_once(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_seconds", lambda model, phase, windows: 0.1 * phase.batch)
    settings = Settings(minutes=0.1)
    small = replace(recipe(4), eval_characters=20)
    _, reports = train_char_lm(small, data, tmp_path / "run", settings, progress=False)
    left = 60 * 0.1 * module.ROOM - 12 / 3 * 20 / 256 * (0.4 + 0.2)
    expected = round(4 * left / (4 * 0.4 + 4 * 0.2))
    assert [report.steps for report in reports] == [expected] * 2
    monkeypatch.setattr(module, "_seconds", lambda model, phase, windows: 1e-3)
    _, reports = train_char_lm(small, data, tmp_path / "run", settings, progress=False)
    assert [report.steps for report in reports] == [expected] * 2


def test_the_time_of_a_step_is_measured_and_leaves_no_gradient(data: Path, tmp_path: Path) -> None:
    _, reports = train_char_lm(recipe(1), data, tmp_path / "run", Settings(minutes=0.02), progress=False)
    assert all(report.steps >= 1 for report in reports)


def test_a_memory_is_trained_with(data: Path, tmp_path: Path) -> None:
    _, reports = train_char_lm(recipe(1), data, tmp_path / "run", Settings(memory=20), progress=False)
    assert len(reports) == 2


def test_the_folder_of_another_run_is_refused(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train_char_lm(recipe(1), data, out, progress=False)
    with pytest.raises(InputError, match="`out` must be the folder of a run with the same settings"):
        train_char_lm(recipe(1), data, out, Settings(seed=1), progress=False)
    with pytest.raises(InputError, match="the same recipe"):
        train_char_lm(recipe(2), data, out, progress=False)
    data.write_bytes(TEXT.replace(b"7", b"8"))
    with pytest.raises(InputError, match="the same data"):
        train_char_lm(recipe(1), data, out, progress=False)
    data.write_bytes(TEXT)
    (out / "recipe.json").write_text(json.dumps(json.loads((out / "recipe.json").read_text()) | {"steps": 3}))
    with pytest.raises(CheckpointError, match="it does not say how many steps each phase has"):
        train_char_lm(recipe(1), data, out, progress=False)


def test_another_machine_may_compute_in_other_pieces(data: Path, tmp_path: Path) -> None:
    train_char_lm(recipe(1), data, tmp_path / "run", progress=False)
    settings = Settings(micro_tokens=64, gradient_checkpointing=True)
    _, reports = train_char_lm(recipe(1), data, tmp_path / "run", settings, progress=False)
    assert len(reports) == 2


def test_the_card_says_what_was_trained_on_what(data: Path, tmp_path: Path) -> None:
    _, reports = train_char_lm(recipe(1), data, tmp_path / "run", progress=False)
    card = (tmp_path / "run/README.md").read_text()
    for words in ("text.txt", "longspan sample", f"{reports[-1].metrics[METRIC]:.4g}"):
        assert words in card


def test_the_global_generator_stays_as_it_was(data: Path, tmp_path: Path) -> None:
    before = torch.random.get_rng_state()
    train_char_lm(recipe(1), data, tmp_path / "run", progress=False)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": -1}, "`seed` must be at least 0"),
        ({"memory": -1}, "`memory` must be at least 0"),
        ({"vocabulary": "words"}, "`vocabulary` must be one of bytes, data"),
        ({"minutes": 0}, r"`minutes` must be from 0\.001"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings(**changes)


def test_a_text_shorter_than_a_window_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_bytes(TEXT[:130])
    with pytest.raises(InputError, match="longer than a window of 128 bytes, but is '118 bytes'"):
        train_char_lm(recipe(), tmp_path / "short.txt", tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_the_papers_phases_double_lengths_and_windows_and_halve_the_rate() -> None:
    for name in ("small", "large"):
        phases = RECIPES[name].phases
        assert [phase.length for phase in phases] == [2048, 4096, 8192, 16_384, 23_040]
        assert [phase.lr for phase in phases] == [2.5e-4, 1.25e-4, 6.25e-5, 3.125e-5, 1.5625e-5]
        ends = [(phase.radius[0], phase.radius[-1]) for phase in phases]
        assert ends == [(32, 512), (64, 1024), (128, 2048), (256, 4096), (512, 8192)]
        assert [phase.batch for phase in phases] == [32, 32, 16, 16, 16]
        assert all(
            phase.schedule.factor(step, phase.steps) == 1 for phase in phases for step in (10_000, 10**6)
        )
    small = RECIPES["small"]
    assert [phase.steps for phase in small.phases] == [430_000, 50_000, 50_000, 35_000, 5_000]
    assert [phase.schedule.warmup for phase in small.phases] == [10_000, 5_000, 5_000, 3_500, 500]
    assert (small.max_grad_norm, small.weight_decay, small.config.dropout) == (0.25, 0.01, 0.2)
    assert (small.eval_length, small.eval_step) == (32_256, 512)


def test_a_recipe_is_had_by_name_with_other_positions_and_steps() -> None:
    found = recipe_named("tiny", positions="relative", steps=30)
    assert found.config.position_type == "relative"
    assert sum(phase.steps for phase in found.phases) == 30
    with pytest.raises(InputError, match="`config` must be one of tiny, small, large, but is 'huge'"):
        recipe_named("huge")
    with pytest.raises(InputError, match="`steps` must be at least 2, but is 1"):
        recipe_named("tiny", steps=1)


def test_a_phase_of_other_layers_is_refused() -> None:
    with pytest.raises(InputError, match="`radius` must be one for each of the 3 layers, but is 2"):
        replace(recipe(), phases=(replace(recipe().phases[0], radius=(1, 2)),))


def test_a_folder_without_such_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`model` must be the folder of a language model of bytes"):
        load_char_lm(tmp_path)
    reader("bert", "fill").save(tmp_path)
    with pytest.raises(InputError, match="`model` must be a language model of bytes, but is 'Bert'"):
        load_char_lm(tmp_path)
