"""A few seconds of the fuzz of the command line; `make fuzz` runs it for minutes."""

from fuzz.cli import fuzz


def test_no_arguments_end_in_a_traceback_a_hang_or_a_loss() -> None:
    assert fuzz(6, seed=15) > 3
