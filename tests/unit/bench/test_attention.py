import pytest

from longspan.bench.attention import run, run_cases, short_rows
from longspan.bench.measure import Turn
from longspan.bench.report import Report
from longspan.errors import InputError


def test_an_unknown_case_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"`case` must be one of forward, training, .* but is 'fastest'"):
        run_cases(Report({}), ["forward", "fastest"], 1, flex=False)


@pytest.mark.parametrize("option", ["rounds", "threads"])
def test_less_than_one_round_or_thread_is_refused(option: str) -> None:
    with pytest.raises(InputError, match=f"`{option}` must be at least 1, but is 0"):
        run(**{option: 0})  # type: ignore[arg-type]


def test_the_short_table_counts_transformers_without_its_projections() -> None:
    results = [
        {
            "longspan native": Turn(0.010, 6e9, 8e9),
            "transformers": Turn(0.250, 0.0, 10e9),
            "projections": Turn(0.050, 0.0, 10e9),
        }
    ]
    ours, theirs = short_rows(4096, results)
    assert ours == ["4096", "longspan native", "10.0", "0.750", "1.00 x"]
    assert theirs == ["4096", "transformers' chunks, less projections", "200", "0.0300", "20.0 x"]
