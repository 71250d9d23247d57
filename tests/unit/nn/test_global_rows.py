"""Global rows: two ways to compute them, one result."""

import numpy as np
import pytest
import torch
from torch import Tensor

from longspan.engine.labels import Labels
from longspan.engine.plan import Plan
from longspan.errors import FARTHEST
from longspan.families.attention_spec import AttentionSpec
from longspan.families.longformer.attention import (
    GlobalProjections,
    GlobalRows,
    Group,
    LongformerAttention,
    _projected,
)
from longspan.families.longformer.model import LongformerConfig
from longspan.layout import Layout
from longspan.nn.relative import RelativeBias

LAYOUT = Layout.packed([50, 30], marked=[[0, 3], [1]])
HEADS, WIDTH = 4, 32


@pytest.fixture
def attention() -> LongformerAttention:
    torch.manual_seed(0)
    module = LongformerAttention(WIDTH, HEADS, dropout=0.3).double()
    for parameter in module.parameters():
        parameter.data = torch.randn_like(parameter) / 4
    return module


def specs(layout: Layout) -> list[AttentionSpec]:
    """The attention of marked rows, as Longformer's config has it."""
    config = LongformerConfig(layers=1, heads=HEADS, width=WIDTH, radius=1)
    return list(config.attention(layout)[0][1:])


def apart(attention: LongformerAttention) -> GlobalProjections:
    projections = attention.global_query, attention.global_key, attention.global_value
    return GlobalProjections(*projections, HEADS, attention)


def both_ways(labels: Labels | None = None) -> tuple[Group, Group]:
    few = GlobalRows.of(specs(LAYOUT), HEADS, WIDTH, labels).few
    many = _projected(specs(LAYOUT)[0], LAYOUT.marked_rows, HEADS, labels)
    assert few is not None
    assert many is not None
    return few, many


@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
def test_carrying_the_query_equals_projecting_the_keys(attention: LongformerAttention, biased: bool) -> None:
    table = RelativeBias(32, HEADS).double()
    labels, buckets = table.distances(reach=1)
    biases = table(buckets) if biased else ()
    few, many = both_ways(labels if biased else None)
    attention.eval()
    x = torch.randn(80, WIDTH, dtype=torch.float64, requires_grad=True)
    ways = tuple(
        read(x, x[group.rows], group, biases)
        for read, group in ((apart(attention)._absorbed, few), (apart(attention)._projected, many))
    )
    torch.testing.assert_close(*ways, rtol=0, atol=1e-13)
    weights = [p for linear in (attention.global_query, attention.global_key, attention.global_value)
               for p in linear.parameters()]  # fmt: skip
    weights += table.parameters() if biased else []
    upstream = torch.randn_like(ways[0])
    gradients = [torch.autograd.grad(way, [x, *weights], upstream, retain_graph=True) for way in ways]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_dropout_has_the_same_mean_and_spread_both_ways(attention: LongformerAttention) -> None:
    few, many = both_ways()
    attention.float()  # the fast backend
    x = torch.randn(80, WIDTH)
    torch.manual_seed(0)

    def draws(read: object, group: Group) -> Tensor:
        with torch.no_grad():
            return torch.stack([read(x, x[group.rows], group, ()) for _ in range(400)])  # type: ignore[operator]

    a, b = draws(apart(attention)._absorbed, few), draws(apart(attention)._projected, many)
    sure = (b.var(0) / 200).sqrt()
    assert ((a.mean(0) - b.mean(0)).abs() < 5 * sure).all()
    assert abs(float((a.var(0) / b.var(0)).mean()) - 1) < 0.1
    heads = a[:, 0].unflatten(-1, (HEADS, -1))[..., 0]  # one number for each head of one row
    off_diagonal = np.corrcoef(heads.T.numpy())[~np.eye(HEADS, dtype=bool)]
    assert np.abs(off_diagonal).max() < 0.25, "heads drop different keys"


def test_each_document_chooses_for_itself() -> None:
    crowded = list(range(8))  # 8 tokens x 4 heads reach the width 32
    rows = GlobalRows.of(specs(Layout.packed([40, 20, 9], marked=[[2], crowded, []])), HEADS, WIDTH)
    assert rows.few is not None
    assert rows.many is not None
    assert rows.few.rows.tolist() == [2]
    assert rows.many.rows.tolist() == [40 + i for i in crowded]
    assert rows.many.keys is not None
    assert rows.many.keys.tolist() == list(range(40, 60)), "only its own document is projected"


def test_no_marked_rows_cost_nothing() -> None:
    assert GlobalRows.of(specs(Layout.packed([40])), HEADS, WIDTH) == GlobalRows(None, None)


def test_positions_whose_product_with_the_heads_needs_more_than_32_bits_change_nothing(
    attention: LongformerAttention,
) -> None:
    x, found = torch.randn(50, WIDTH).double(), []
    for start in (0, FARTHEST - 50):
        layout = Layout.packed([50], marked=[[0, 49]], start=start)
        rows = GlobalRows.of(specs(layout), HEADS, WIDTH)
        assert rows.few is not None
        assert isinstance(rows.few.pairs, Plan)
        positions = rows.few.pairs.queries.sites.position
        assert 0 <= positions.min() < positions.max() <= FARTHEST
        assert np.unique(positions).size == 2 * HEADS  # each draws its own dropout
        with torch.no_grad():
            found.append(apart(attention.eval()).write(torch.zeros_like(x), x, rows))
    assert torch.equal(*found)
