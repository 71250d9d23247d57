"""The benchmark of search runs whole, on little, with a small model in the cache's place."""

import json
from pathlib import Path

import pytest

from longspan.bench import search
from longspan.cli import main
from unit.search.folders import tiny


@pytest.fixture(autouse=True)
def _small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny().save(tmp_path / "model")
    monkeypatch.setattr("longspan.builtin.pull", lambda: tmp_path / "model")
    little = search.Sizes(characters=4000, passages=60, files=5, rounds=1, words=(3, 6000))
    monkeypatch.setattr(search, "Sizes", lambda *_: little)
    monkeypatch.chdir(tmp_path)


def test_queries_and_updates_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "bench",
                "search",
                "query",
                "--json",
                "figures.json",
                "words",
                "space",
                "update",
                "--threads",
                "1",
            ]
        )
        == 0
    )
    assert "of the time for all" in capsys.readouterr().out
    figures = json.loads(Path("figures.json").read_text())["figures"]
    assert [figure["measure"] for figure in figures[:3]] == ["hybrid, ms", "dense, ms", "bm25, ms"]
    space = {figure["measure"]: figure["spread"]["median"] for figure in figures if figure["case"] == "space"}
    assert [*space] == [f"bytes per passage, tokens {kind}" for kind in ("1bit", "8bit", "off")]
    assert all(figure["spread"]["median"] > 0 for figure in figures)


def test_a_case_that_does_not_exist_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "search", "speed"]) == 2
    assert "one of encode, encode-kept, query, words, space, start, update" in capsys.readouterr().err


def test_text_is_read_or_made(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("river ", encoding="utf-8")
    assert search.text_of(tmp_path / "docs", 13) == "river river r"
    assert len(search.text_of(None, 5000)) == 5000
