"""Files of every kind give the same rows; what is broken is named by file and line."""

import csv
import gzip
import json
import logging
import lzma
import sys
from pathlib import Path

import pytest

from longspan.datasets import Dataset, read_dataset, read_splits
from longspan.datasets.forms import QUESTIONS, TEXTS
from longspan.errors import LongspanError

ROWS = [{"text": "One, two", "label": "yes"}, {"text": "Three\nfour", "label": "no"}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
TABLE = 'text,label\n"One, two",yes\n"Three\nfour",no\n'
FILES: dict[str, bytes] = {
    "a.jsonl": LINES.encode(),
    "b.json": json.dumps(ROWS, indent=1).encode(),
    "c.json": json.dumps({"version": 1, "data": ROWS}).encode(),
    "d.csv": b"\xef\xbb\xbf" + TABLE.encode(),
    "e.tsv": TABLE.replace('"One, two",', "One, two\t").replace('",', '"\t').replace("t,l", "t\tl").encode(),
    "f.jsonl.gz": gzip.compress(LINES.encode()),
    "g.csv.xz": lzma.compress(TABLE.encode()),
}


def written(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_same_columns(name: str, tmp_path: Path) -> None:
    dataset = read_dataset(written(tmp_path, name, FILES[name]), TEXTS)
    assert list(dataset.inputs[0]) == ["One, two", "Three\nfour"]
    assert list(dataset.labels) == ["yes", "no"]
    assert dataset.classes == ("no", "yes")


def test_places_are_the_lines_where_examples_begin(tmp_path: Path) -> None:
    content = 'text,label\n"a\nb",x\nc,y\n'
    assert [place.line for place in read_dataset(written(tmp_path, "a.csv", content), TEXTS).places] == [2, 4]
    content = '[\n{"text": "a",\n"label": "x"},\n\n{"text": "c", "label": "y"}\n]'
    assert [place.line for place in read_dataset(written(tmp_path, "a.json", content), TEXTS).places] == [
        2,
        5,
    ]


BROKEN: dict[str, tuple[str, bytes, str]] = {
    "no JSON": ("a.jsonl", b'{"text": "a", "label": "x"}\n{text}\n', "line 2 is not JSON"),
    "NaN": ("a.jsonl", b'{"text": "a", "label": NaN}\n', "NaN is not a JSON number"),
    "a key twice": ("a.json", b'{"data": [], "x": 1, "x": 2}', "is not JSON"),
    "no object": ("a.jsonl", b"[1]\n", "line 1 holds no object"),
    "JSON that ends early": ("a.json", b'[{"text": "a"}, ', "it was cut off"),
    "no comma": ("a.json", b'[{"text": "a"} {"text": "b"}]', "is not JSON"),
    "a comma too many": ("a.json", b'[{"text": "a"},]', "is not JSON"),
    "something behind": ("a.json", b"[] []", "something stands behind its end"),
    "a deep nest": ("a.json", b"[" * 100_000, "is not JSON"),
    "Latin-1": ("a.csv", b"text,label\na,x\n\xe9,y\n", "line 3 is not UTF-8"),
    "Latin-1 in JSON": ("a.json", b'[\n\n"\xe9"]', "line 3 is not UTF-8"),
    "an empty table": ("a.csv", b"", "it has no header"),
    "a header twice": ("a.csv", b"text,text\n", "its header has 'text' twice"),
    "a long row": ("a.csv", b"text,label\na,b,c\n", "line 2 has 3 cells under a header of 2"),
    "an open quote": ("a.csv", b'text,label\n"a,b\n', "is no row"),
    "no gzip": ("a.jsonl.gz", b"text", "it is damaged, or was cut off"),
    "half an xz": ("a.csv.xz", lzma.compress(TABLE.encode())[:40], "it is damaged, or was cut off"),
    "no examples": ("a.jsonl", b"\n", "it holds no examples"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_an_error_that_says_where(case: str, tmp_path: Path) -> None:
    name, content, reason = BROKEN[case]
    with pytest.raises(LongspanError) as error:
        read_dataset(written(tmp_path, name, content), TEXTS)
    assert reason in str(error.value)
    assert name in str(error.value)


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.datasets.files.MOST", 1000)
    for name in ("a.jsonl.gz", "a.json.gz"):
        with pytest.raises(LongspanError, match="holds more than 1,000 bytes"):
            read_dataset(written(tmp_path, name, gzip.compress(b" \n" * 1000)), TEXTS)


def test_a_cell_may_hold_a_whole_document_and_the_limit_of_csv_is_as_before(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    path = written(tmp_path, "a.csv", f"text,label\n{'word ' * 50_000},x\n")
    assert len(str(read_dataset(path, TEXTS).inputs[0][0])) == 250_000
    assert csv.field_size_limit() == before


def test_missing_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(LongspanError, match="No such file"):
        read_dataset(tmp_path / "nothing.jsonl", TEXTS)


def test_parquet_needs_pyarrow_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(LongspanError, match=r"pip install longspan\[parquet\]"):
        read_dataset(written(tmp_path, "a.parquet", b"PAR1"), TEXTS)


def test_parquet_is_read_row_by_row(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    assert list(read_dataset(tmp_path / "a.parquet", TEXTS).labels) == ["yes", "no"]
    with pytest.raises(LongspanError, match="no Parquet file"):
        read_dataset(written(tmp_path, "b.parquet", b"nothing of the kind"), TEXTS)


def line(text: str, label: str) -> str:
    return json.dumps({"text": text, "label": label}) + "\n"


def test_a_folder_has_splits_with_the_same_classes(tmp_path: Path) -> None:
    written(tmp_path, "my-train.jsonl", line("a", "x") + line("b", "y"))
    written(tmp_path, "dev/part.jsonl", line("c", "z"))
    written(tmp_path, "README.md", "about")
    splits = read_splits(tmp_path, TEXTS)
    assert {name: len(part) for name, part in splits.items()} == {"train": 2, "validation": 1}
    assert {part.classes for part in splits.values()} == {("x", "y", "z")}
    assert list(read_dataset(tmp_path, TEXTS, split="validation").labels) == ["z"]


def test_several_files_of_a_split_are_joined_in_order(tmp_path: Path) -> None:
    for number, label in enumerate("yxz"):
        written(tmp_path, f"data/train-0000{number}-of-00003.jsonl", line(label, label))
    assert list(read_dataset(tmp_path, TEXTS).labels) == ["y", "x", "z"]


def test_a_folder_that_leaves_a_choice_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LongspanError, match="holds no file of data"):
        read_dataset(tmp_path, TEXTS)
    written(tmp_path, "train.jsonl", line("a", "x"))
    written(tmp_path, "test.jsonl", line("b", "x"))
    with pytest.raises(LongspanError, match="`split` must be one of train, test"):
        read_dataset(tmp_path, TEXTS)
    with pytest.raises(LongspanError, match="`split` must be one of train, test"):
        read_dataset(tmp_path, TEXTS, split="validation")
    written(tmp_path, "train.csv", "text,label\n")
    with pytest.raises(LongspanError, match=r"holds train as \.csv and \.jsonl"):
        read_dataset(tmp_path, TEXTS, split="train")


def test_a_file_has_no_splits(tmp_path: Path) -> None:
    with pytest.raises(LongspanError, match="a folder with files named train"):
        read_splits(written(tmp_path, "a.jsonl", line("a", "x")), TEXTS)


def test_ids_are_unique(tmp_path: Path) -> None:
    rows = [{"id": number, "text": "a", "label": "x"} for number in (1, 2, 1)]
    path = written(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(LongspanError, match=r"a\.jsonl, line 3: the id '1' has been given to .*line 1"):
        read_dataset(path, TEXTS)
    ids = read_dataset(written(tmp_path, "data/b.jsonl", LINES), TEXTS).ids
    assert list(ids) == ["data/b:1", "data/b:2"]


def test_examples_without_their_answers_can_be_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"question": "Where?", "context": "In Rome.", "answers": [said]} for said in ("Rome", "Paris")]
    path = written(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(LongspanError, match=r"line 2: the answer 'Paris' does not stand in the text"):
        read_dataset(path, QUESTIONS)
    with caplog.at_level(logging.WARNING, logger="longspan"):
        assert len(read_dataset(path, QUESTIONS, unmatched="drop")) == 1
    assert "1 example left out" in caplog.text
    with pytest.raises(LongspanError, match="`unmatched` must be one of error, drop"):
        read_dataset(path, QUESTIONS, unmatched="ignore")


def test_a_preview_shows_examples_as_people_read_them(tmp_path: Path) -> None:
    rows = [{"question": "Where?", "context": f"{'Anna ' * 100}is in Rome.", "answers": ["Rome"]}] * 9
    path = written(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    dataset = read_dataset(path, QUESTIONS)
    assert [place.line for place in dataset.sample(3).places] == [1, 4, 7]
    shown = dataset.preview(2)
    assert shown.count("question: Where?") == 2
    assert " ... " in shown
    assert "label: ['Rome']" in shown
    assert isinstance(dataset.sample(100), Dataset)
    assert len(dataset.sample(100)) == 9
