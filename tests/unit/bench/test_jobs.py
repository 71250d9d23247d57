from dataclasses import replace

import pytest
import torch

from longspan.bench.dense_etc import DenseEtc
from longspan.bench.jobs import KEEP_PAGES, SIDES, Job
from longspan.bench.measure import Missing, Run, conditions, turn
from longspan.families.etc.model import Etc, etc_base
from longspan.layout import Layout

TINY = Job(
    layers=2,
    width=32,
    heads=2,
    feed_forward=64,
    vocab_size=97,
    radius=8,
    block=8,
    positions=256,
    lengths=(200,),
)
LED = replace(TINY, family="led")
UP = ("up.weight", "fc1.weight")


def called(run: Run) -> None:
    with conditions(run):
        run.call()


@pytest.mark.parametrize("who", ["ours", "transformers", "accelerated"])
@pytest.mark.parametrize("family", ["longformer", "bigbird"])
@pytest.mark.parametrize("training", [False, True])
def test_both_sides_run_both_families(who: str, family: str, training: bool) -> None:
    called(replace(TINY, who=who, family=family, training=training)())


LED_TASKS = [(0, False), (7, False), (7, True)]
"""Tokens that are written, and whether that is learnt."""


@pytest.mark.parametrize("who", ["ours", "transformers", "accelerated"])
@pytest.mark.parametrize(("written", "training"), LED_TASKS)
def test_all_sides_of_led_read_write_and_learn(who: str, written: int, training: bool) -> None:
    job = replace(LED, who=who, written=written, training=training)
    model, outputs = SIDES[who](job, job.documents)
    model.train(training)
    with torch.set_grad_enabled(training):
        (output,) = outputs()
    assert output.numel() == (1 if training else written or LED.lengths[0] * LED.width)
    assert (job().amount > 0) == (not written)


@pytest.mark.parametrize("who", ["ours", "transformers"])
def test_what_reading_takes_of_a_summary_is_known(who: str) -> None:
    run = replace(LED, who=who, written=7)()
    assert run.reading is not None
    assert run.reading() == 0.0
    taken = turn(run, 1, None)
    assert 0 < taken.reading < taken.seconds


def test_led_has_the_same_weights_on_both_sides() -> None:
    sides = [SIDES[who](replace(LED, who=who), LED.documents)[0] for who in ("ours", "transformers")]
    ours, theirs = (sum(weight.numel() for weight in side.parameters()) for side in sides)
    assert ours == theirs


@pytest.mark.parametrize("who", ["ours", "transformers"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_step_of_led_leaves_gradients_in_both_its_parts(who: str, checkpointing: bool) -> None:
    job = replace(LED, who=who, written=7, training=True, checkpointing=checkpointing)
    model, outputs = SIDES[who](job, job.documents)
    (loss,) = outputs()
    loss.backward()
    grads = {name: weight.grad for name, weight in model.named_parameters()}
    for part in ("encoder", "decoder"):
        (grad,) = (grads[name] for name in grads if f"{part}.layers.0.f" in name and name.endswith(UP))
        assert grad is not None
        assert 0 < grad.abs().max() < torch.inf


@pytest.mark.parametrize("who", ["ours", "transformers"])
def test_documents_of_any_lengths_run(who: str) -> None:
    called(replace(TINY, who=who, lengths=(3, 40, 1), batch=2)())


@pytest.mark.parametrize("who", ["ours", "transformers"])
def test_a_training_job_leaves_finite_gradients_that_are_not_zero(
    who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[torch.nn.Module] = []
    train = torch.nn.Module.train

    def watched(module: torch.nn.Module, mode: bool = True) -> torch.nn.Module:
        seen.append(module)
        return train(module, mode)

    monkeypatch.setattr(torch.nn.Module, "train", watched)
    called(replace(TINY, who=who, training=True)())
    weights = [weight for name, weight in seen[0].named_parameters() if name.endswith("up.weight")]
    weights += [
        weight for name, weight in seen[0].named_parameters() if name.endswith("intermediate.dense.weight")
    ]
    assert len(weights) == TINY.layers
    for weight in weights:
        assert weight.grad is not None
        assert 0 < weight.grad.abs().max() < torch.inf


@pytest.mark.parametrize("who", ["ours", "dense", "fused"])
def test_etc_runs_on_every_side(who: str) -> None:
    called(replace(TINY, who=who, family="etc", globals=11)())


@pytest.mark.parametrize("fused", [False, True])
def test_etc_in_plain_torch_computes_what_ours_does(fused: bool) -> None:
    torch.manual_seed(0)
    sizes = {"vocab_size": 97, "width": 32, "layers": 2, "heads": 2, "feed_forward": 64}
    model = Etc(etc_base(**sizes, radius=8, block=9, init_std=0.3)).eval()
    ids, layout = torch.arange(90), Layout.packed([90])
    with torch.no_grad():
        ours = model(ids, layout)
        torch.testing.assert_close(DenseEtc(model, fused=fused)(ids, layout), ours, rtol=0, atol=1e-5)


def test_the_flops_of_the_base_model_are_those_of_its_linear_layers() -> None:
    per_row = 768 * (3 * 768) + 768 * 768 + 2 * 768 * 3072
    assert Job(family="bigbird").linear_flops == 2 * 12 * 4096 * per_row
    assert Job().linear_flops == pytest.approx(696e9, rel=1e-3)
    assert Job().linear_flops - Job(family="bigbird").linear_flops == 2 * 12 * (3 - 1) * 768**2


def test_linear_layers_that_nothing_needs_are_not_counted() -> None:
    assert TINY().amount == TINY.linear_flops
    assert replace(TINY, training=True)().amount == 0


def test_pages_are_kept_by_the_allocators_own_settings() -> None:
    assert replace(TINY, keep_pages=True).environment == KEEP_PAGES
    assert TINY.environment == {}


def test_without_transformers_its_job_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.bench.peers.find_spec", lambda _: None)
    with pytest.raises(Missing, match="transformers is not installed"):
        replace(TINY, who="transformers")()


@pytest.mark.parametrize("lite", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_a_poolingformer_runs_and_trains(lite: bool, training: bool) -> None:
    options = {"two_level": (0, 1), "mix": lite, "share_weights": lite}
    job = replace(TINY, family="poolingformer", options=options, training=training)
    called(job())
