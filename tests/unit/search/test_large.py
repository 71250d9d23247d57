"""Large documents: written and read bit by bit, kept when a run is stopped, the same at the end."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.progress import Estimate, Progress
from longspan.reader import Reader
from longspan.search import large, passages, writer
from longspan.search.index import Index
from longspan.search.records import Entry, Row
from longspan.search.store import Store
from longspan.search.update import Report
from longspan.text import parts
from longspan.text.documents import Document, Limits
from longspan.text.passages import tile
from unit.search.folders import late, text, tiny, written

ROWS = [f"2024-05-{n % 28 + 1:02} INFO row{n} {' '.join(text(n % 9, 1).split()[:9])}\n" for n in range(400)]
LOG = "".join(row + "\n" * (n % 17 == 0) for n, row in enumerate(ROWS))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large."""
    monkeypatch.setattr(parts, "PART", 6000)
    monkeypatch.setattr(parts, "REACH", 500)
    monkeypatch.setattr(parts, "CHUNK", 1000)
    monkeypatch.setattr(parts, "LARGE", 12000)
    monkeypatch.setattr(writer, "LARGE", 12000)
    monkeypatch.setattr(large, "SEGMENT", 8000)
    monkeypatch.setattr(large, "STEP", 6000)
    monkeypatch.setattr(passages, "SEGMENT", 8000)
    monkeypatch.setattr(passages, "STEP", 6000)
    monkeypatch.setattr(writer, "SEGMENT", 8000)
    monkeypatch.setattr(writer, "GROUP", 4000)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return written(tmp_path / "docs", {"big.log": LOG, "small.txt": text(1)})


def entry_of(index: Index, name: str) -> Entry:
    document = {file.path.name: file.document for file in index._store.files()}[name]
    return index._store.entries(f"id = {document}")[0]


def stops_at(call: Callable[..., object], count: int) -> Callable[..., object]:
    """The same function, interrupted at a call."""
    left = iter(range(count, 0, -1))

    def stopping(*given: object, **named: object) -> object:
        if next(left, 0) == 1:
            raise KeyboardInterrupt
        return call(*given, **named)

    return stopping


def test_the_parts_of_a_text_are_the_text(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        content = (LOG + "é\ufffd中👩 " * 900 + "x" * 9000).replace("row7 ", "row7\r\n")
        path = tmp_path / "a.txt"
        path.write_bytes(content.encode(encoding))
        assert parts.is_large(path)
        found = list(parts.read_parts(path))
        assert "".join(part.document.text for part in found) == content
        assert [part.start for part in found] == [
            sum(len(part.document.text) for part in found[:n]) for n in range(len(found))
        ]
        assert [part.line for part in found] == [1 + content.count("\n", 0, part.start) for part in found]
        assert max(len(part.document.text) for part in found) <= 6000
        assert found[-1].done == path.stat().st_size
        assert sum(part.document.replaced for part in found) == 0


def test_invalid_bytes_of_a_large_text_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(LOG.encode() + "Grüße ".encode() * 9 + b"caf\xe9 " * 5)
    assert sum(part.document.replaced for part in parts.read_parts(path)) == 5


def test_a_large_text_in_an_old_encoding_is_read_in_it(tmp_path: Path) -> None:
    path, text = tmp_path / "a.txt", LOG + "Der Vertrag wird gekündigt, fällig am Dienstag.\n" * 9
    path.write_bytes(text.encode("cp1252"))
    assert "".join(part.document.text for part in parts.read_parts(path)) == text
    path.write_bytes(text.encode("utf-16-le"))
    assert "".join(part.document.text for part in parts.read_parts(path)) == text


def test_passages_of_a_large_file_are_the_file_with_lines_and_sections(tmp_path: Path) -> None:
    table = "name,comment\n" + "".join(f"row {n},rivers {n * 7}\n" for n in range(1500))
    docs = written(tmp_path / "docs", {"big.csv": table})
    index = Index.open(tmp_path / "index")
    assert index.add(docs, vectors=False).added == 1
    rows = index._store.passages(entry_of(index, "big.csv"))
    assert "".join(row.text for row in rows) == table
    whole = Document(table)
    assert [row.line for row in rows] == [whole.line_of(row.start) for row in rows]
    assert {row.section for row in rows} == {"name, comment"}
    assert entry_of(index, "big.csv").characters == len(table)
    index.verify()
    (hit,) = index.search('"row 1234"', mode="bm25")
    assert hit.line is not None
    assert hit.line <= 1236 <= hit.line + hit.text.count("\n")
    assert hit.text.splitlines()[1236 - hit.line] == "row 1234,rivers 8638"
    assert index.add(docs, vectors=False).unchanged == 1


def test_a_large_file_of_another_format_is_cut_as_well(tmp_path: Path) -> None:
    body = "".join(f"<h2>Part {n}</h2><p>{text(n, 20)}</p>" for n in range(40))
    docs = written(tmp_path / "docs", {"big.html": f"<title>Rivers</title>{body}"})
    index = Index.open(tmp_path / "index")
    assert index.add(docs, vectors=False).added == 1
    entry = entry_of(index, "big.html")
    rows = index._store.passages(entry)
    assert entry.title == "Rivers"
    assert entry.characters == sum(len(row.text) for row in rows) > 24000
    assert {row.section.split("\n")[-1] for row in rows} >= {f"Part {n}" for n in range(1, 40)}
    index.verify()


def test_words_of_a_stopped_run_are_kept_and_the_next_one_goes_on(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Index.open(tmp_path / "whole")
    whole.add(docs, vectors=False)
    index = Index.open(tmp_path / "index")
    with monkeypatch.context() as patch:
        patch.setattr(large.Growing, "add", stops_at(large.Growing.add, 4))
        with pytest.raises(KeyboardInterrupt):
            index.add(docs, vectors=False)
    begun = entry_of(index, "big.log")
    assert 12000 < begun.characters < len(LOG)
    assert index.search("row9", mode="bm25")[0].file == docs / "big.log"
    assert not index._store.pending() or [e.id for e in index._store.pending()] != [begun.id]
    index.verify()
    index.close()
    index = Index.open(tmp_path / "index")
    added: list[int] = []
    extend = large.extend

    def counting(store: Store, entry: Entry, rows: list[Row], crc: int) -> tuple[Entry, int]:
        added.append(len(rows))
        return extend(store, entry, rows, crc)

    monkeypatch.setattr(large, "extend", counting)
    assert index.add(docs, vectors=False).changed == 1
    now = entry_of(index, "big.log")
    assert now.first == begun.first
    assert sum(added) == now.passages - begun.passages > 0
    assert index._store.passages(now) == whole._store.passages(entry_of(whole, "big.log"))
    assert now.crc == entry_of(whole, "big.log").crc
    index.verify()
    assert index.add(docs, vectors=False).unchanged == 2


def test_a_begun_document_that_others_follow_is_begun_again(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index.open(tmp_path / "index")
    with monkeypatch.context() as patch:
        patch.setattr(large.Growing, "add", stops_at(large.Growing.add, 3))
        with pytest.raises(KeyboardInterrupt):
            index.add(docs, vectors=False)
    (docs / "new.txt").write_text(text(5), encoding="utf-8")
    index.add(docs, vectors=False)
    assert "".join(row.text for row in index._store.passages(entry_of(index, "big.log"))) == LOG
    assert len(index._store.entries()) == 3
    index.verify()


@pytest.mark.parametrize(("model", "kind"), [(tiny, "1bit"), (tiny, "off"), (late, "1bit"), (late, "8bit")])
def test_a_document_read_in_segments_has_the_vectors_of_all_of_them(
    docs: Path, tmp_path: Path, model: Callable[[], Reader], kind: str
) -> None:
    index = Index.open(tmp_path / "index", model(), tokens=kind)
    report = index.add(docs)
    assert report.read == 2
    entry = entry_of(index, "big.log")
    texts = [row.text for row in index._store.passages(entry)]
    assert len(passages._segments(0, texts)) > 3
    (expected,) = passages.encode(model(), [texts], kind)
    own = slice(entry.slot, entry.slot + entry.passages + 1)
    assert np.abs(index._store.vectors()[own] - expected.tables.vectors).max() < 1e-3
    codes = index._store.tokens()[entry.token_slot : entry.token_slot + entry.tokens]
    assert np.array_equal(codes, expected.tables.tokens)
    assert (entry.n_tokens, entry.truncated, entry.windows) == expected.reading
    assert entry.token_ends == (expected.tables.token_ends.astype("<u4").tobytes() if kind != "off" else b"")
    index.verify()


@pytest.mark.parametrize(("model", "between"), [(tiny, False), (tiny, True), (late, True)])
def test_what_the_model_read_before_a_stop_is_not_read_again(
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: Callable[[], Reader],
    between: bool,
) -> None:
    whole = Index.open(tmp_path / "whole", model())
    whole.add(docs)
    index = Index.open(tmp_path / "index", model())
    with monkeypatch.context() as patch:
        patch.setattr(passages, "encode", stops_at(passages.encode, 4))
        with pytest.raises(KeyboardInterrupt):
            index.add(docs)
    index.verify()
    done = large.progress_of(index._store, entry_of(index, "big.log"))
    assert done.passages > 0
    if between:
        (docs / "new.txt").write_text(text(5), encoding="utf-8")
        index.add(docs, vectors=False)
        index.embed(inside=docs / "new.txt")
    read: list[int] = []
    encode = passages.encode

    def counting(reader: object, documents: list[list[str]], *given: object, **named: object) -> object:
        read.append(sum(map(len, documents)))
        return encode(reader, documents, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(passages, "encode", counting)
    index.close()
    index = Index.open(tmp_path / "index", model())
    index.embed()
    entry, expected = entry_of(index, "big.log"), entry_of(whole, "big.log")
    assert sum(read) <= entry.passages - done.passages + 60  # and the passages of the small file
    assert entry.vectors_crc == expected.vectors_crc
    assert entry.token_ends == expected.token_ends
    assert not index._store.db.rows("SELECT * FROM unfinished")
    index.verify()


def test_a_document_that_the_model_cannot_read_does_not_stop_the_others(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(docs, {"bad.txt": "poison " + text(2), "worse.log": LOG + "poison", "last.txt": text(3)})
    encode = passages.encode

    def picky(reader: object, documents: list[list[str]], *given: object, **named: object) -> object:
        for own in documents:
            if any("poison" in each for each in own):
                raise MemoryError if len(documents) == 1 and len(own) > 20 else InputError("no poison")
        return encode(reader, documents, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(passages, "encode", picky)
    index = Index.open(tmp_path / "index", tiny())
    report = index.add(docs)
    assert report.read == 3
    failed = {path.name: reason for path, reason in report.failed}
    assert failed.keys() == {"bad.txt", "worse.log"}
    assert failed["bad.txt"] == "the model cannot read it: no poison"
    assert {entry.digest for entry in index._store.pending()} == {
        entry_of(index, name).digest for name in failed
    }
    monkeypatch.setattr(passages, "encode", encode)
    assert index.embed().read == 2
    index.verify()


def test_a_reader_that_refuses_long_documents_indexes_them_all_the_same(docs: Path, tmp_path: Path) -> None:
    reader = tiny()
    reader.options = reader.options.but(overflow="error")
    report = Index.open(tmp_path / "index", reader).add(docs)
    assert (report.read, report.failed) == (2, [])


def test_a_document_too_long_for_the_model_is_named_by_its_file(docs: Path, tmp_path: Path) -> None:
    reader = tiny()
    reader.options = reader.options.but(limit=2)
    report = Index.open(tmp_path / "index", reader).add(docs)
    assert {path.name for path, _ in report.failed} == {"big.log", "small.txt"}
    assert all(str(path) in reason for path, reason in report.failed)


def test_a_file_that_cannot_be_cut_does_not_stop_the_others(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(docs, {"bad.txt": "poison", "more.txt": text(6)})

    def picky(content: str, *given: object) -> list[int]:
        if "poison" in content:
            raise MemoryError("no room")
        return tile(content, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(writer, "tile", picky)
    report = Index.open(tmp_path / "index").add(docs, vectors=False)
    assert report.added == 3
    ((path, reason),) = report.failed
    assert path.name == "bad.txt"
    assert "cannot be processed (MemoryError: no room)" in reason


def test_a_file_beyond_the_limits_is_refused_at_once(docs: Path, tmp_path: Path) -> None:
    with (docs / "huge.log").open("wb") as file:
        file.write(LOG.encode())
        file.truncate(1 << 40)
    began = time.perf_counter()
    report = Index.open(tmp_path / "index").add(docs, vectors=False)
    assert time.perf_counter() - began < 60  # to read it for its digest would take half an hour
    ((path, reason),) = report.failed
    assert path.name == "huge.log"
    assert "its 1,099,511,627,776 bytes are more than" in reason
    assert report.added == 2


def test_a_large_file_that_ends_in_an_error_is_reported(docs: Path, tmp_path: Path) -> None:
    report = Report()
    index = Index.open(tmp_path / "index")
    writer.Writer(index._store, report, None).add_words([docs], ocr=False, limits=Limits(characters=20000))
    ((path, reason),) = report.failed
    assert path.name == "big.log"
    assert "more than 20,000 characters" in reason
    assert report.added == 1
    index.verify()


class Counting(Progress):
    def __init__(self) -> None:
        self.done: list[int] = []
        self.total = 0

    def update(self, count: int) -> None:
        self.done.append(count)

    def expect(self, total: int) -> None:
        self.total = total


def test_progress_moves_within_a_file_and_ends_where_it_said(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bars: list[Counting] = []

    @contextmanager
    def counted(total: int, *_: object, **__: object) -> Iterator[Counting]:
        bars.append(Counting())
        bars[-1].total = total
        yield bars[-1]

    monkeypatch.setattr(writer, "progress_bar", counted)
    Index.open(tmp_path / "index", tiny()).add(docs)
    words, tokens = bars
    assert sum(words.done) == words.total == sum(path.stat().st_size for path in docs.iterdir())
    assert len(words.done) > 5
    assert sum(tokens.done) == tokens.total
    assert len(tokens.done) > 4


def test_the_number_of_tokens_is_estimated_from_those_that_are_known() -> None:
    bar = Counting()
    estimate = Estimate(bar, 1000)
    estimate.learn(100, 50)
    assert bar.total == 500
    estimate.learn(300, 50)
    assert bar.total == 250
    estimate.learn(600, 20)
    assert bar.total == 120
