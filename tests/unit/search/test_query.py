"""Queries: phrases, words that must not stand there, and filters by file, type and time."""

import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from longspan.errors import InputError
from longspan.search.index import Index
from longspan.search.query import Query, exactly, fits, holds
from longspan.search.words import words_of
from unit.search.folders import by_words

FILES = {
    "lease 2021.md": "# Lease\n\nThe tenant pays late fees after ten days.",
    "notes.txt": "Fees that come late are paid by the tenant. Interest is due.",
    "letter.txt": "The late fees bear interest.",
    "plain.txt": "Nobody owes anything.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("query")
    index = by_words(folder, FILES)
    for name, year in (
        ("lease 2021.md", 2021),
        ("notes.txt", 2023),
        ("letter.txt", 2024),
        ("plain.txt", 2025),
    ):
        when = datetime(year, 6, 15).timestamp()
        os.utime(folder / "docs" / name, (when, when))
    index.add(folder / "docs", vectors=False)
    return index


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("late fees", {"lease 2021.md", "notes.txt", "letter.txt"}),
        ('"late fees"', {"lease 2021.md", "letter.txt"}),
        ("who pays “late fees”?", {"lease 2021.md", "letter.txt"}),
        ('"fees late"', set()),
        ("fees -interest", {"lease 2021.md"}),
        ('fees -"late fees"', {"notes.txt"}),
        ("fees file:lease*.md", {"lease 2021.md"}),
        ('fees file:"lease 2021"', {"lease 2021.md"}),
        ("fees file:lease file:letter", {"lease 2021.md", "letter.txt"}),
        ("fees file:*/docs/n*", {"notes.txt"}),
        ("fees type:markdown", {"lease 2021.md"}),
        ("fees type:.TXT", {"notes.txt", "letter.txt"}),
        ("fees type:pdf", set()),
        ("fees before:2023", {"lease 2021.md"}),
        ("fees before:2023-07", {"lease 2021.md", "notes.txt"}),
        ("fees after:2023-06-14", {"notes.txt", "letter.txt"}),
        ("fees after:2023-06-15", {"letter.txt"}),
        ("fees after:2023-05 before:2024-06-15", {"notes.txt"}),
        ("fees after:2023-06", {"letter.txt"}),
        ("fees -tenant type:txt after:2022", {"letter.txt"}),
    ],
)
def test_a_query_is_narrowed_as_it_says(index: Index, query: str, names: set[str]) -> None:
    for mode in ("bm25", "hybrid"):
        for by in ("passage", "document"):
            hits = index.search(query, top=99, mode=mode, by=by)
            assert {hit.file.name for hit in hits if hit.bm25} == names
            if "fees" in query and mode == "bm25":
                assert {hit.file.name for hit in hits} == names


def test_what_is_excluded_is_not_shown_however_little_is_left(index: Index) -> None:
    assert [hit.file.name for hit in index.search("fees -interest -tenant", top=99)] == ["plain.txt"]
    assert len(index.search('"no such phrase"', top=99)) == 0


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ('who pays "late fees" -interest file:a', "who pays late fees"),
        ("e-mail well-known -x", "e-mail well-known"),
        ("what is file: for", "what is file: for"),
        ("a - b", "a - b"),
        ("http://x.org before:2020", "http://x.org"),
        ('"', '"'),
    ],
)
def test_marks_and_filters_are_no_part_of_what_is_asked(query: str, asked: str) -> None:
    assert Query.parse(query).text == asked


@pytest.mark.parametrize("query", ["-interest", "file:a.txt", '""', "type:pdf before:2020"])
def test_filters_alone_ask_nothing(query: str) -> None:
    with pytest.raises(InputError, match="`query` must be some words to look for"):
        Query.parse(query)


@pytest.mark.parametrize("value", ["yesterday", "2024-13", "2024-02-30", "9999", "9999-12-31", "0000", "24"])
def test_a_time_that_is_none_is_an_error(value: str) -> None:
    with pytest.raises(InputError, match=r"`after:` must be a day, a month or a year such as 2024-05-31"):
        Query.parse(f"fees after:{value}")


def test_times_are_local_and_after_begins_when_the_day_is_over() -> None:
    query = Query.parse("fees before:2024-02-28 after:2024-02-29")
    assert query.before == time.mktime((2024, 2, 28, 0, 0, 0, 0, 0, -1))
    assert query.after == time.mktime((2024, 3, 1, 0, 0, 0, 0, 0, -1))
    both = Query.parse("fees before:2024 before:2023 after:2020 after:2021")
    assert (both.before, both.after) == (datetime(2023, 1, 1).timestamp(), datetime(2022, 1, 1).timestamp())


@pytest.mark.parametrize(
    ("text", "holding"),
    [
        ("The Late, fees", True),
        ("late_FEES", True),
        ("late\nfees", True),
        ("lately fees", False),
        ("late feest", False),
        ("café: late fees", True),
        ("ｌａｔｅ fees", True),
        ("late £ fees", True),
        ("fees late", False),
    ],
)
def test_a_phrase_is_found_by_its_words_whatever_stands_between_them(text: str, holding: bool) -> None:
    assert exactly(("late", "fees"))(text) == holding == holds(words_of(text), ("late", "fees"))


def test_patterns_fit_names_and_paths_whatever_their_case() -> None:
    path = Path("/Home/Docs/Lease.PDF")
    assert all(
        fits(path, each) for each in ("lease", "LEASE.pdf", "*.pdf", "docs/lease", "*/docs/*", "l?ase*")
    )
    assert not any(fits(path, each) for each in ("docs", "*.txt", "home/lease", "ease.pd?x"))
