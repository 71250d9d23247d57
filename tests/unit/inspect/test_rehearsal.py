"""The memory that a rehearsal without numbers predicts is what reading takes."""

from dataclasses import replace

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from longspan.families.registry import presets
from longspan.inspect.dry_run import dry_run
from longspan.layout import Layout


def test_predicted_activations_are_those_of_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.nn.rows.PAGES", 1 << 40)  # the profiler sees torch's memory alone
    config = replace(presets()["modernbert-base"].encoder, vocab_size=500, pad_id=0, layers=2)
    layout = Layout.packed([2048])
    model, ids = config.backbone().eval(), torch.zeros(2048, dtype=torch.long)
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        model(ids, layout)
    events = sorted(seen.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    peak = used = 0
    for event in events:
        if event.name() == "[memory]":
            used += event.nbytes()
            peak = max(peak, used)
    assert peak > 0
    assert dry_run(config, layout).activation_bytes == pytest.approx(peak, rel=0.1)
