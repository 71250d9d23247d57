"""MPNet computes what transformers computes, at any length; made long, its biases by distance are kept."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from longspan.checkpoints.load import load_model
from longspan.layout import Layout
from longspan.lengthening.lengthen import lengthen, lengthened
from longspan.nn.relative import bucket
from parity.peers import close, compare, output, pair, words

WHOLE = 200
GLOBALS: dict[str, Callable[[int], list[int]]] = {
    "none": lambda n: [],
    "two": lambda n: [0, n // 2],
    "many": lambda n: list(range(0, n, 3)),
}


def test_distances_fall_into_the_buckets_of_transformers() -> None:
    distance = torch.arange(-5000, 5001)
    assert torch.equal(bucket(distance, 32), MPNetEncoder.relative_position_bucket(distance))


@pytest.mark.parametrize("n", [1, 2, 13, 64, 149, WHOLE])
def test_the_body_agrees_at_any_length(tmp_path: Path, n: int) -> None:
    theirs, ours = pair(tmp_path, "MPNet", "Model")
    (ids,) = words(n)
    compare(theirs, ours, ours.backbone(ids, Layout.packed([n])), output(theirs(ids[None])))


@pytest.mark.parametrize("chosen", GLOBALS)
@pytest.mark.parametrize("pattern", ["longformer", "bigbird"])
def test_where_all_is_seen_a_long_mpnet_is_the_short_one(tmp_path: Path, pattern: str, chosen: str) -> None:
    theirs, ours = pair(tmp_path, "MPNet", "Model")
    long = lengthened(ours, 777, pattern=pattern, radius=WHOLE if pattern == "longformer" else None)
    (ids,) = words(WHOLE)
    expected = output(theirs(ids[None]))
    given = long.backbone(ids, Layout.packed([WHOLE], marked=[GLOBALS[chosen](WHOLE)]))
    close(given.detach(), expected.detach())
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(2))
    (expected * weights).sum().backward()
    (given * weights).sum().backward()
    table = long.get_parameter("backbone.relative_bias.table.weight").grad
    assert table is not None
    close(table, theirs.encoder.relative_attention_bias.weight.grad, "the table of biases")


def test_a_long_mpnet_is_a_type_of_our_own_and_keeps_its_biases(tmp_path: Path) -> None:
    theirs, _ = pair(tmp_path / "short", "MPNet", "ForMaskedLM")
    report = lengthen(tmp_path / "short", 777, out=tmp_path / "long", radius=20)
    assert report.why_not == "biases by distance"
    assert "biases by distance" in report.copied
    loaded = load_model(tmp_path / "long")
    assert loaded.config["model_type"] == "longspan-longformer"
    stored = loaded.model.get_parameter("backbone.relative_bias.table.weight")
    assert torch.equal(stored, theirs.mpnet.encoder.relative_attention_bias.weight)


def test_beyond_the_window_distances_count_for_global_tokens_only(tmp_path: Path) -> None:
    """The last bucket is of distances from 128 on: with a window of 20 only a global token meets it."""
    _, ours = pair(tmp_path, "MPNet", "Model")
    long = lengthened(ours, 777, radius=20)
    (ids,), table = words(700), long.get_parameter("backbone.relative_bias.table.weight")
    with torch.no_grad():
        plain, marked = Layout.packed([700]), Layout.packed([700], marked=[[0]])
        before = long.backbone(ids, plain), long.backbone(ids, marked)
        table[[15, 31]] += 1.0
        assert torch.equal(long.backbone(ids, plain), before[0])
        assert not torch.allclose(long.backbone(ids, marked), before[1])
