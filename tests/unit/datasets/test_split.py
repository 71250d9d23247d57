"""Splits do not leak, do not depend on the order of a file, and are the same for the same seed."""

import json
from pathlib import Path

import pytest

from longspan.datasets import Dataset, read_dataset, split
from longspan.datasets.forms import TEXTS
from longspan.errors import LongspanError

SHARES = {"train": 0.6, "validation": 0.2, "test": 0.2}


def dataset(folder: Path, rows: list[dict[str, object]]) -> Dataset:
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_dataset(folder / "a.jsonl", TEXTS)


def rows(count: int) -> list[dict[str, object]]:
    return [{"id": n, "text": f"Text {n % 29}", "label": "x", "source": f"s{n % 7}"} for n in range(count)]


def ids(parts: dict[str, Dataset]) -> dict[str, set[str]]:
    return {name: set(part.ids) for name, part in parts.items()}


def test_every_example_is_in_one_part_of_its_share(tmp_path: Path) -> None:
    parts = split(dataset(tmp_path, [{"text": f"{n}", "label": "x"} for n in range(200)]), SHARES)
    assert {name: len(part) for name, part in parts.items()} == {"train": 120, "validation": 40, "test": 40}
    assert len({one for part in parts.values() for one in part.ids}) == 200


def test_equal_texts_are_on_one_side_though_spelled_otherwise(tmp_path: Path) -> None:
    doubled = rows(58)
    for row in doubled[29:]:
        row["text"] = str(row["text"]).upper().replace(" ", "  \n")
    parts = split(dataset(tmp_path, doubled), SHARES)
    sides = [set(part.documents) for part in parts.values()]
    assert sum(map(len, sides)) == len(set.union(*sides)) == 29


def test_values_of_a_column_are_on_one_side(tmp_path: Path) -> None:
    given = [{**row, "text": f"Text {row['id']}"} for row in rows(70)]
    parts = split(dataset(tmp_path, given), {"train": 0.5, "test": 0.5}, by="source")
    sides = [set(part.column("source")) for part in parts.values()]
    assert not sides[0] & sides[1]
    assert len(sides[0] | sides[1]) == 7


def test_texts_that_tie_values_together_keep_them_on_one_side(tmp_path: Path) -> None:
    given: list[dict[str, object]] = [
        {"text": text, "label": "x", "source": source}
        for text, source in (("a", "1"), ("a", "2"), ("b", "2"), ("b", "3"), ("c", "4"))
    ]
    parts = split(dataset(tmp_path, given), {"train": 0.5, "test": 0.5}, seed=1, by="source")
    assert sorted(len(part) for part in parts.values()) == [1, 4]


def test_a_split_is_a_function_of_the_seed_and_not_of_the_order(tmp_path: Path) -> None:
    given = rows(87)
    first = ids(split(dataset(tmp_path, given), SHARES, 3))
    assert ids(split(dataset(tmp_path, given[::-1]), SHARES, 3)) == first
    assert ids(split(dataset(tmp_path, given), SHARES, 4)) != first


def test_shares_below_one_leave_examples_out(tmp_path: Path) -> None:
    parts = split(dataset(tmp_path, [{"text": f"{n}", "label": "x"} for n in range(100)]), {"some": 0.1})
    assert len(parts["some"]) == 10


def test_shares_that_cannot_be_had_are_errors(tmp_path: Path) -> None:
    given = dataset(tmp_path, rows(3))
    with pytest.raises(LongspanError, match="`shares` must be names with shares that sum to at most 1"):
        split(given, {"train": 0.9, "test": 0.2})
    with pytest.raises(LongspanError, match=r"`shares\['train'\]` must be from 0 to 1"):
        split(given, {"train": 1.5})
    with pytest.raises(LongspanError, match="There are 3 groups that must stay together"):
        split(given, {"train": 0.99, "test": 0.01})
    with pytest.raises(LongspanError, match="`column` must be one of source, text"):
        split(given, {"train": 1.0}, by="file")
