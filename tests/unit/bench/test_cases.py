from itertools import pairwise

import pytest

from longspan.bench.bars import Case
from longspan.bench.cases import DILATIONS, DOCUMENTS, SWEEP, cases
from longspan.bench.measure import Missing
from longspan.bench.ours import Work, forcing, longformer, useful_flops
from longspan.patterns import Window

TIMED = [case for case in cases().values() if isinstance(case, Case)]


@pytest.mark.parametrize("case", TIMED, ids=lambda case: case.name)
def test_a_case_has_every_run_its_bars_read(case: Case) -> None:
    assert {name for bar in case.bars for name in bar.reads} == set(case.runs)


def test_sixty_four_documents_of_realistic_lengths_are_packed() -> None:
    assert len(DOCUMENTS) == 64
    assert (min(DOCUMENTS), max(DOCUMENTS)) == (40, 4000)


def test_the_sweep_goes_from_256_to_16384() -> None:
    assert (SWEEP[0], SWEEP[-1]) == (256, 16_384)
    assert all(a < b <= 2 * a for a, b in pairwise(SWEEP))


def test_every_head_has_a_dilation() -> None:
    assert len(DILATIONS) == 12


def test_useful_flops_count_allowed_pairs_of_every_head() -> None:
    n, radius, heads = 100, 7, 3
    pairs = sum(min(n - 1, i + radius) - max(0, i - radius) + 1 for i in range(n))
    plan = Work(pattern=Window(radius), lengths=(n,), heads=heads).plan()
    assert plan.pairs_allowed == heads * pairs
    assert useful_flops(plan.pairs_allowed, 64, backward=True) == 14 * 64 * heads * pairs


def test_a_global_token_is_counted_once_in_each_direction() -> None:
    plan = Work(pattern=longformer(2), lengths=(50, 40), heads=1).plan()
    window = Work(pattern=Window(2), lengths=(50, 40), heads=1).plan()
    beyond = (50 - 3) + (40 - 3)
    assert plan.pairs_allowed == window.pairs_allowed + 2 * beyond


def test_flex_attention_is_left_out_unless_asked_for() -> None:
    forward = cases()["forward"]
    assert isinstance(forward, Case)
    with pytest.raises(Missing, match="--flex"):
        forward.runs["flex"]()


def test_a_target_that_this_processor_lacks_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.bench.ours.targets", lambda: ["avx2", "scalar"])
    with pytest.raises(Missing, match="no AVX-512"):
        forcing("native", "avx512")


def test_a_backend_that_is_not_built_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.bench.ours.targets", list)
    with pytest.raises(Missing, match="not built"):
        forcing("native", None)
