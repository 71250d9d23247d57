"""`longspan index --model COLBERT` and what people do with such an index."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from longspan.cli import main
from longspan.search import keep_server
from longspan.search.index import Index
from longspan.search.keep import identity
from longspan.search.request import Request
from unit.search.folders import filled, late

QUERY = "who lives near the old bridge?"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    late().save(tmp_path / "model")
    filled(tmp_path / "docs", 3)


def told(capsys: pytest.CaptureFixture[str], *arguments: str, status: int | None = 0) -> tuple[str, str]:
    found = main(list(arguments))
    printed = capsys.readouterr()
    assert found == status if status is not None else found in (0, 1), printed.err
    return printed.out, printed.err


def hits(capsys: pytest.CaptureFixture[str], *options: str) -> list[tuple[str, int]]:
    out, _ = told(capsys, "search", QUERY, "--index", "./ix", "--json", *options, status=None)
    return [(hit["file"], hit["start"]) for hit in json.loads(out)["results"]]


def test_an_index_is_made_checked_searched_and_rebuilt(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("index", "docs", "--index", "./ix", "--model", "model", "--check", "--json")
    made = json.loads(told(capsys, *command)[0])
    assert (made["read"], made["checked"], made["share_read"]) == (3, True, 1.0)
    found = {mode: hits(capsys, "--mode", mode) for mode in ("hybrid", "dense", "bm25")}
    assert all(len(own) == 5 for own in found.values())
    Path("docs/3.txt").write_text("A new text of a few words.\n")
    assert json.loads(told(capsys, "index", "--index", "./ix", "--json")[0])["read"] == 1
    Path("docs/3.txt").unlink()
    told(capsys, "index", "--index", "./ix", "--rebuild", "--check")
    assert {mode: hits(capsys, "--mode", mode) for mode in found} == found


def test_a_warm_process_answers_as_the_ordinary_way(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", "--index", "./ix", "--model", "model")
    expected = hits(capsys, "--mode", "dense")
    request, own = Request(queries=[QUERY], mode="dense", json=True), identity(Path("ix"), None)
    with Index.open("ix") as index:
        found = keep_server.respond(index, own, {"identity": own, "request": asdict(request)})
    results = json.loads(found["reply"]["out"])["results"]
    assert [(hit["file"], hit["start"]) for hit in results] == expected


def test_what_cannot_be_done_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = told(capsys, "index", "docs", "--index", "./a", "--model", "model", "--tokens", "off", status=2)
    assert "`tokens` must be 1bit or 8bit for a model of late interaction, but is 'off'" in err
    _, err = told(capsys, "encode", "docs", "--model", "model", "--out", "x.npy", status=2)
    assert "It compares tokens: use rank(), or search an index." in err
