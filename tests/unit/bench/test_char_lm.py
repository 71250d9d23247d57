"""The jobs of the language model of bytes: what is timed is a step, its attention, or writing."""

from dataclasses import replace

import torch

from longspan.bench.char_lm import StepJob, WritingJob, attentions, cases
from longspan.families.char_lm.model import config_of
from longspan.layout import Layout
from unit.families.char_lm import config, one, some_ids

TINY = config(radius=(100, 100, 100), dilation=1)
JOB = StepJob(config=TINY, lengths=(40, 40))


def test_dense_attention_is_the_same_where_windows_hold_all() -> None:
    ours, dense = (replace(JOB, who=who).model().eval() for who in ("ours", "dense"))
    with torch.no_grad():
        torch.testing.assert_close(
            ours(some_ids(40), one(40)), dense(some_ids(40), one(40)), rtol=0, atol=1e-5
        )


def test_a_step_changes_the_weights() -> None:
    weights = JOB.model().state_dict()
    run = JOB()
    assert run.grad
    run.call()
    again = JOB.model().state_dict()
    assert all(torch.equal(weights[name], again[name]) for name in weights)  # a job starts anew


def test_attentions_alone_go_both_ways_and_leave_nothing() -> None:
    model = JOB.model()
    run = attentions(model, Layout.packed([40]))
    run.call()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_windows_are_those_of_a_later_phase() -> None:
    assert config_of(replace(JOB, windows=16).model()).radii == (1600, 1600, 1600)


def test_writing_goes_on_behind_a_text() -> None:
    run = WritingJob(position=9, config=TINY)()
    run.call()
    run.call()


def test_the_bars_are_those_of_the_issue() -> None:
    bars = {(name, bar.measure): bar.bar for name, _, bars in cases() for bar in bars}
    assert bars == {
        ("char-lm-step", "x faster than dense"): 1.6,
        ("char-lm-step", "x time per byte of n 2048"): 1.15,
        ("char-lm-attention", "x faster than dense"): 4.0,
        ("char-lm-long", "GB"): 12.0,
        ("char-lm-writing", "x time per byte at 1,000"): 1.1,
    }
