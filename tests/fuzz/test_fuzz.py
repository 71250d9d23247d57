"""A short run of every fuzzer, and proof that the harness sees what it must."""

from pathlib import Path

import pytest

from fuzz import harness
from fuzz.__main__ import SUBJECTS
from fuzz.harness import FuzzError, campaign, watched

CASES = {"tokenizers": 60, "documents": 12, "checkpoints": 40, "index_files": 6}
"""Of a short run."""


@pytest.mark.parametrize("subject", CASES)
def test_no_case_ends_in_anything_but_a_result_or_an_error_of_ours(subject: str) -> None:
    assert campaign(f"fuzz.{subject}", 60.0, seed=0, cases=CASES[subject]) == CASES[subject]


def test_every_subject_is_run_by_make_fuzz() -> None:
    assert set(SUBJECTS) >= CASES.keys()


def test_a_seed_gives_the_same_cases_and_outcomes_are_counted() -> None:
    first, second = (watched("fuzz.wrong", 60.0, seed=1, cases=20).outcomes for _ in range(2))
    assert first == second
    assert first.keys() == {"done", "refused"}
    assert first.total() == 20


@pytest.mark.parametrize("way", ["failed", "crashed", "hung", "grew"])
def test_what_goes_wrong_is_seen_and_kept(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "grew" and not harness.CLEAR.exists():
        pytest.skip("peak memory is read from /proc/self, which this system does not have")
    monkeypatch.setattr(harness, "KEPT", tmp_path)
    monkeypatch.setattr(harness, "SECONDS", 2.0 if way == "hung" else harness.SECONDS)
    monkeypatch.setenv("LONGSPAN_FUZZ_WRONG", way)
    with pytest.raises(FuzzError, match=f"7-2: {way}"):
        campaign("fuzz.wrong", 60.0, seed=7, first=2, cases=1)
    kept = tmp_path / "wrong" / "7-2"
    assert (kept / "number").is_file()
    assert "--seed 7 --case 2" in (kept / "WHY").read_text()
