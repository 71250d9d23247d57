"""What a user of an index gives it and gets back: paths, filters, functions and errors of their own."""

import os
from pathlib import Path

import pytest

from longspan.errors import InputError
from longspan.search.index import Index
from longspan.search.section import section_at
from unit.search.folders import by_words, written

TWINS = {"lease.txt": "The tenant pays 9 dollars.", "copy.md": "The tenant pays 9 dollars."}


def test_of_equal_files_one_that_fits_the_filters_is_shown(tmp_path: Path) -> None:
    index = by_words(tmp_path, TWINS)
    docs = tmp_path / "docs"
    os.utime(docs / "copy.md", (0, 0))
    index.add(docs, vectors=False)
    for narrowed, name in (("file:lease*", "lease.txt"), ("type:md", "copy.md"), ("after:1999", "lease.txt")):
        (hit,) = index.search(f"who pays? {narrowed}")
        assert hit.file == docs / name
        assert [path.name for path in hit.same] == [other for other in TWINS if other != name]


def test_a_user_who_scores_passages_decides_their_order(tmp_path: Path) -> None:
    index = by_words(tmp_path, {f"{number}.txt": f"Rome has {number} hills." for number in range(7)})

    def by_number(pairs: list[tuple[str, str]]) -> list[float]:
        assert {query for query, _ in pairs} == {"how many hills has Rome"}
        return [float(text.split()[2]) for _, text in pairs]

    hits = index.search('how many hills has "Rome"', 2, rerank=by_number)
    assert [(hit.file.name, hit.score) for hit in hits] == [("6.txt", 6.0), ("5.txt", 5.0)]
    assert not hits.likely
    assert not index.search("hills", mode="bm25").likely
    assert index.search("hills").likely
    assert index.search("hills", by="document").likely
    assert [hit.score for hit in index.search("hills", 9, rerank=by_number_of_hills, min_score=5)] == [
        6.0,
        5.0,
    ]
    with pytest.raises(InputError, match="`rerank` must be a function that gives 7 pairs as many scores"):
        index.search("hills", rerank=lambda pairs: [1.0])
    with pytest.raises(InputError, match="`rerank` must be a Reader, a model or a function, but is 'int'"):
        index.search("hills", rerank=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`rerank_top` must be"):
        index.search("hills", rerank=by_number, rerank_top=0)
    (hit,) = index.search("hills 2", rerank=by_number_of_hills, rerank_top=1, top=1)
    assert hit.file.name == "2.txt"


def by_number_of_hills(pairs: list[tuple[str, str]]) -> list[float]:
    return [float(text.split()[2]) for _, text in pairs]


@pytest.mark.parametrize("error", [ValueError("mine"), KeyError("mine"), TypeError("mine")])
def test_the_error_of_a_user_s_function_is_no_damage_of_the_index(tmp_path: Path, error: Exception) -> None:
    def failing(pairs: list[tuple[str, str]]) -> list[float]:
        raise error

    index = by_words(tmp_path, TWINS)
    with pytest.raises(type(error)) as raised:
        index.search("who pays?", rerank=failing)
    assert raised.value is error
    assert index.search("who pays?")


def test_a_path_with_dots_is_the_path_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = written(tmp_path / "docs", {"a.txt": "Rome has hills.", "b.txt": "Rome has rivers."})
    (tmp_path / "link").symlink_to(docs)
    (docs / "deep").mkdir()
    monkeypatch.chdir(docs / "deep")
    index = Index.open(tmp_path / "index")
    assert index.add("..", vectors=False).added == 2
    assert index.files == [docs / "a.txt", docs / "b.txt"]
    assert index.add(docs, vectors=False).unchanged == 2
    assert [hit.file.name for hit in index.search("Rome", inside="../a.txt")] == ["a.txt"]
    assert index.remove("../b.txt") == 1
    index.add("../../link", vectors=False)
    assert tmp_path / "link" / "a.txt" in index.files


def test_the_section_of_a_hit_is_that_of_its_answer(tmp_path: Path) -> None:
    """A heading inside of a passage, before one answer and behind another."""
    more = "It is due on the first Monday of each month. It is paid to the account of the owner. " * 9
    index = by_words(
        tmp_path,
        {"lease.md": f"# Lease\n\nTwo zebras are welcome.\n\n## Rent\n\nThe giraffe pays.\n\n{more}"},
    )
    zebra, giraffe = (index.search(query)[0] for query in ("zebras", "the giraffe"))
    assert (zebra.start, zebra.section) == (giraffe.start, ("Lease",))
    assert giraffe.section == ("Lease", "Rent")


@pytest.mark.parametrize(
    ("place", "behind", "section"),
    [
        (5, [], ("A",)),
        (5, [("more", ("A", "1 B"))], ("A",)),
        (9, [("more", ("A", "1 B"))], ("A", "1 B")),
        (9, [("more", ("A", "1 B", "C"))], ("A", "1 B")),
        (9, [("## 1 B\nmore", ("A", "1 B"))], ("A",)),
        (9, [("more", ("Z",))], ("A",)),
    ],
)
def test_a_section_is_known_by_the_next_passage(
    place: int, behind: list[tuple[str, tuple[str, ...]]], section: tuple[str, ...]
) -> None:
    assert section_at(place, "Before. 1\tB Behind.", ("A",), behind) == section
