"""The progress bar: when it appears, and what it says."""

import io
import re
import time
from contextlib import redirect_stderr

import pytest

from longspan.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_that_is_asked_for_is_shown_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(12_000, "tokens", shown=True, scale=True) as bar:
        bar.update(6_000)
        bar.update(6_000)
    shown = capsys.readouterr().err
    assert "100%" in shown
    assert "12.0k/12.0k" in shown
    assert " tokens/s" in shown


def test_nobody_sees_a_bar_that_is_not_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(3, "documents", shown=False) as bar:
        bar.update(3)
        bar.expect(4)
        bar.status("reading")
    with progress_bar(0, "documents", shown=True) as bar:
        bar.update(0)
    with progress_bar(3, "documents", delay=0.0) as bar:  # stderr is not a terminal here
        bar.update(3)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_a_bar_waits_until_the_work_takes_long() -> None:
    with redirect_stderr(Terminal()) as screen, progress_bar(3, "documents", delay=60.0) as bar:
        bar.update(3)
    assert screen.getvalue() == ""
    with redirect_stderr(Terminal()) as screen, progress_bar(3, "documents", delay=0.0) as bar:
        bar.update(3)
    assert "3/3" in screen.getvalue()


def test_the_total_may_change_on_the_way() -> None:
    with redirect_stderr(Terminal()) as screen, progress_bar(10, "tokens", shown=True) as bar:
        bar.expect(40)
        bar.update(40)
    assert "40/40" in screen.getvalue()


def test_a_status_is_shown_between_two_updates_and_a_bar_can_be_erased() -> None:
    with (
        redirect_stderr(Terminal()) as screen,
        progress_bar(2, "documents", shown=True, leave=False) as bar,
    ):
        time.sleep(0.2)  # tqdm draws at most ten times a second
        bar.status("reading 4,096 tokens")
        assert screen.getvalue().endswith("reading 4,096 tokens]")
    assert screen.getvalue().endswith(" \r")


def test_what_was_done_before_tells_nothing_of_the_speed() -> None:
    with redirect_stderr(Terminal()) as screen, progress_bar(10_000, "tokens", done=9_000, shown=True) as bar:
        time.sleep(0.2)
        bar.update(100)
    rate = re.search(r"9100/10000 .*?([\d.]+) tokens/s", screen.getvalue().replace("\r", "\n"))
    assert rate is not None
    assert float(rate[1]) < 1000


def test_a_bar_can_go_back() -> None:
    with redirect_stderr(Terminal()) as screen, progress_bar(10, "tokens", shown=True) as bar:
        bar.update(8)
        bar.update(-3)
    assert "5/10" in screen.getvalue()
