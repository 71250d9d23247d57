from pathlib import Path

import pytest

from longspan.bench import loading
from longspan.bench.loading import LoadCase, tokenizer, write
from longspan.bench.report import Report
from longspan.checkpoints.load import load_model
from longspan.families.longformer.model import LongformerConfig
from longspan.text.tokenizer import Tokenizer

TINY = LongformerConfig(vocab_size=300, width=16, layers=1, heads=2, feed_forward=32, radius=4, positions=64)


def measured(monkeypatch: pytest.MonkeyPatch, program: str) -> Report:
    monkeypatch.setattr(loading, "FIRST_OUTPUT", program)
    report = Report({})
    LoadCase("load", 1.5, TINY).measure_into(report, 2)
    return report


def test_the_seconds_of_every_fresh_process_count(monkeypatch: pytest.MonkeyPatch) -> None:
    (figure,) = measured(monkeypatch, "print(0.5)").figures
    assert figure.samples == (0.5, 0.5)
    assert figure.verdict == "pass"


def test_more_seconds_than_the_bar_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    (figure,) = measured(monkeypatch, "print(1.6)").figures
    assert figure.verdict == "short"


def test_a_process_that_fails_gives_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    (figure,) = measured(monkeypatch, "raise SystemExit('no such module')").figures
    assert figure.skipped == "no such module"


def test_the_folder_holds_a_model_and_its_tokenizer(tmp_path: Path) -> None:
    write(TINY, tmp_path)
    assert load_model(tmp_path, "encode").model.config == TINY
    assert Tokenizer.from_folder(tmp_path).decode([69, 70]) == "ab"


@pytest.mark.parametrize("size", [300, 50_265])
def test_the_tokenizer_is_as_large_as_the_vocabulary(size: int) -> None:
    made = tokenizer(size)
    assert made.vocab_size == size
    assert (made.cls, made.pad, made.sep) == (0, 1, 2)
