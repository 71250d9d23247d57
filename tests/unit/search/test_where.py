"""A hit cites the place where a person finds its answer, in every format."""

import json
from pathlib import Path

import pytest

from longspan.search.index import Index
from longspan.search.records import packed, unpacked
from longspan.search.request import Request, answer
from longspan.text.files.places import Places, counted
from unit.text import files
from unit.text.test_places import CASES, written


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    pytest.importorskip("pypdfium2")
    folder = tmp_path_factory.mktemp("places")
    (folder / "docs").mkdir()
    for name in CASES:
        written(folder / "docs", name)
    index = Index.open(folder / "index")
    report = index.add(folder / "docs", vectors=False, progress=False)
    assert not report.failed
    return index


@pytest.mark.parametrize("name", CASES)
def test_what_is_cited_is_where_the_words_stand(index: Index, name: str) -> None:
    (hit,) = index.search(f'"needle" file:{name}', mode="bm25")
    place = CASES[name][1]
    line = int(place.removeprefix("line ")) if place.startswith("line ") else None
    assert (hit.where, hit.answer_line) == (place, line)
    assert hit.cited(hit.file.parent) == (f"{name}:{line}" if line else f"{name}, {place}")
    assert hit.url.endswith("#page=3" if name == "a.pdf" else name)
    assert hit.answer_page == (
        int(place.split()[1]) if place.startswith(("page", "slide")) and name != "a.odp" else None
    )


def test_json_has_no_line_where_there_are_none(index: Index) -> None:
    reply = answer(index, Request(queries=["needle"], mode="bm25", top=50, json=True))
    for found in json.loads(reply.out)["results"]:
        place = CASES[Path(found["file"]).name][1]
        assert found["where"] == place
        assert (found["line"] is None) == (found["answer_line"] is None) == (not place.startswith("line"))


def test_an_answer_behind_a_page_break_is_cited_on_its_own_page(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    (tmp_path / "a.pdf").write_bytes(
        files.pdf(["The lease begins in May.\nNothing else stands here.", "The zebra pays on Monday."])
    )
    index = Index.open(tmp_path / "index")
    index.add(tmp_path / "a.pdf", vectors=False, progress=False)
    (hit,) = index.search("when does the zebra pay?", mode="bm25")
    assert (hit.answer, hit.page, hit.where) == ("The zebra pays on Monday.", 1, "page 2")
    assert hit.place.endswith("a.pdf, page 2")


def test_places_survive_the_way_to_the_disk() -> None:
    mixed = Places((0, 5, 9, 70_000), (3, 4, 1, 2), ((0, "line"), (2, "sheet A, row")))
    for places in (Places(), counted("slide", [0, 4, 4]), mixed):
        again = unpacked(packed(places))
        assert [again.label(at) for at in range(12)] == [places.label(at) for at in range(12)]
        assert again.label(80_000) == places.label(80_000)
