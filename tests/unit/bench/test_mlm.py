"""A step of pretraining on both sides."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from longspan.bench.measure import conditions, turn
from longspan.bench.mlm import MlmJob, cases
from longspan.bench.model_cases import model_cases

SIZES = {"width": 16, "layers": 2, "heads": 2, "feed_forward": 32, "vocab_size": 97, "positions": 256}
JOBS = {
    "longformer-base": MlmJob(lengths=(90, 40), options={**SIZES, "radius": 8, "dilation": 1}),
    "modernbert-base": MlmJob(preset="modernbert-base", lengths=(90,), options={**SIZES, "pad_id": 3}),
}


@pytest.mark.parametrize("who", ["ours", "transformers"])
@pytest.mark.parametrize("preset", JOBS)
def test_a_step_changes_the_weights_and_tells_what_is_outside_of_the_passes(
    preset: str, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(1)
    seen, real = list[int](), torch.optim.AdamW.step

    def counted(self: torch.optim.AdamW) -> object:
        seen.append(len(self.param_groups))
        return real(self)

    monkeypatch.setattr(torch.optim.AdamW, "step", counted)
    run = replace(JOBS[preset], who=who)()
    taken = turn(run, 1, None)
    assert 0 < taken.reading < taken.seconds
    with conditions(run):
        run.call()
    assert len(seen) == 2
    torch.set_num_threads(2)


def test_both_sides_see_the_same_masks_in_the_same_epoch() -> None:
    data = JOBS["longformer-base"].data
    first, again, later = (data.batch(np.arange(2), epoch).ids for epoch in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, later)


def test_the_cases_are_listed_with_their_bars() -> None:
    listed = {name: [(bar.measure, bar.bar) for bar in bars] for name, _, bars in cases()}
    assert listed["mlm-longformer"][0] == ("x faster than transformers", 3.0)
    assert listed["mlm-modernbert-kept"] == [("x faster than transformers keeping pages", 1.5)]
    assert listed.keys() <= model_cases().keys()
