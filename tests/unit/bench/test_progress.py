import pytest

from longspan.bench.progress import progress, step


def test_progress_is_told_on_stderr_before_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    items = progress(["forward", "training"])
    assert next(items) == "forward"
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "[1/2] forward\n")


def test_a_log_file_is_spared_the_single_steps(capsys: pytest.CaptureFixture[str]) -> None:
    step("training: round 1")
    assert capsys.readouterr().err == ""
