"""Intervals by resampling."""

from statistics import fmean

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.metrics.bootstrap import interval, interval_of, paired_interval

HALF = [0.0, 1.0] * 50


def test_an_interval_is_that_of_means_of_draws_with_replacement() -> None:
    low, high = interval(np.array(HALF))
    assert abs(low - 0.4) <= 0.02  # 0.5 - 1.96 * sqrt(0.25 / 100)
    assert abs(high - 0.6) <= 0.02
    assert interval(np.array(HALF)) == (low, high)


def test_the_interval_of_a_mean_as_a_measure_is_that_of_the_values() -> None:
    assert interval_of(fmean, HALF) == pytest.approx(interval(np.array(HALF)))


def test_the_interval_of_a_difference_is_narrow_where_two_methods_go_together() -> None:
    better = [value + 0.25 for value in HALF]
    assert paired_interval(fmean, better, HALF) == pytest.approx((0.25, 0.25))
    low, high = paired_interval(fmean, HALF, HALF[::-1])
    assert low < 0 < high


def test_intervals_of_nothing_and_of_unequal_runs_are_refused() -> None:
    with pytest.raises(InputError, match="`cases` must be at least one case"):
        interval_of(fmean, [])
    with pytest.raises(InputError, match="`ours` must be 1 cases, as many as `theirs`, but is 2"):
        paired_interval(fmean, [1.0, 2.0], [1.0])
