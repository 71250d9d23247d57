"""The index: what is read, what is found, and where it stands."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from longspan.errors import CheckpointError, InputError, LongspanError
from longspan.reader import Reader
from longspan.search import compare
from longspan.search.fusion import SHARPNESS
from longspan.search.index import TOKENS, Index
from longspan.search.passages import encode, encode_query
from longspan.search.records import Entry
from longspan.search.store import Store
from longspan.search.update import digest
from longspan.search.ways import QueryVectors
from longspan.text.documents import Document, read
from longspan.text.passages import LONGEST
from unit.search.folders import by_words, filled, text, tiny, written

MODES = ("dense", "bm25", "hybrid")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return filled(tmp_path / "docs")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.open(tmp_path / "index", tiny())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """An index that no test changes."""
    folder = tmp_path_factory.mktemp("shared")
    index = Index.open(folder / "index", tiny())
    index.add(filled(folder / "docs"))
    return index


def test_only_what_is_new_or_changed_is_read(docs: Path, index: Index) -> None:
    first = index.add(docs)
    assert (first.added, first.read) == (4, 4)
    again = index.add(docs)
    assert (again.read, again.unchanged) == (0, 4)
    (docs / "1.txt").write_text(text(9), encoding="utf-8")
    os.utime(docs / "2.txt", ns=(1, 1))  # touched, but the same
    (docs / "new.md").write_text("A small new text.", encoding="utf-8")
    third = index.add(docs)
    assert (third.added, third.changed, third.unchanged, third.read) == (1, 1, 3, 2)
    assert len(index.files) == 5
    assert "Document 1." not in {hit.text[:11] for hit in index.search("document", top=99, mode="bm25")}
    index.verify()
    assert index.add(docs).unchanged == 5


def test_deleted_files_are_forgotten_and_renamed_ones_are_not_read_again(docs: Path, index: Index) -> None:
    index.add(docs)
    (docs / "0.txt").unlink()
    (docs / "1.txt").rename(docs / "Ünï 文字.txt")
    report = index.add(docs)
    assert (report.removed, report.moved, report.added, report.read) == (1, 1, 0, 0)
    assert index.files == [docs / "2.txt", docs / "3.txt", docs / "Ünï 文字.txt"]
    assert docs / "Ünï 文字.txt" in {hit.file for hit in index.search("Document 1", mode="bm25")}
    index.verify()


def test_files_that_exchange_their_names_are_not_read_again(docs: Path, index: Index) -> None:
    index.add(docs)
    for old, new in (("0", "x"), ("1", "0"), ("x", "1")):
        (docs / f"{old}.txt").rename(docs / f"{new}.txt")
    assert index.add(docs).read == 0
    for hit in index.search("document", top=99, mode="bm25"):
        assert hit.text in hit.file.read_text(encoding="utf-8")


def test_equal_files_share_one_document_and_are_shown_once(docs: Path, index: Index) -> None:
    (docs / "twin.txt").write_text(text(1), encoding="utf-8")
    report = index.add(docs)
    assert (report.added, report.read) == (5, 4)
    for mode in MODES:
        hits = index.search("Document 1", top=99, mode=mode)
        assert len({(hit.text, hit.start) for hit in hits}) == len(hits) > 4
        assert {hit.same for hit in hits if hit.file == docs / "1.txt"} == {(docs / "twin.txt",)}
        assert {hit.same for hit in hits if hit.file == docs / "2.txt"} == {()}
        (hit,) = index.search("Document 1", top=1, mode=mode, inside=docs / "twin.txt")
        assert (hit.file, hit.same) == (docs / "twin.txt", (docs / "1.txt",))
    (docs / "1.txt").unlink()
    assert index.add(docs).read == 0
    assert index.search("Document 1", mode="bm25", inside=docs / "twin.txt")[0].same == ()
    (docs / "late twin.txt").write_text(text(2), encoding="utf-8")
    again = index.add(docs)
    assert (again.added, again.read) == (1, 0)
    index.verify()


def test_words_are_found_before_there_are_vectors(docs: Path, index: Index) -> None:
    report = index.add(docs, vectors=False)
    assert (report.added, report.read, index.share_read, index.model) == (4, 0, 0.0, None)
    for mode in ("bm25", "hybrid"):
        hits = index.search("the river Thames", mode=mode)
        assert hits[0].dense is None
        assert "Thames" in hits[0].text
        assert hits.read == 0
    assert len(index.search("the river Thames", mode="dense")) == 0
    done = index.embed()
    assert (done.read, index.share_read) == (4, 1.0)
    assert index.embed().read == 0
    assert index.search("the river Thames", mode="dense")[0].dense is not None
    index.verify()


def test_what_is_read_and_what_is_not_are_ranked_together(docs: Path, index: Index) -> None:
    index.add(docs)
    (docs / "unread.txt").write_text("The cellar holds a giraffe named Bob.", encoding="utf-8")
    index.add(docs, vectors=False)
    assert 0 < index.share_read < 1
    hits = index.search("giraffe in the cellar", top=99)
    assert hits[0].file == docs / "unread.txt"
    assert hits[0].dense is None
    assert any(hit.dense is not None for hit in hits)
    assert all(0 <= hit.score <= 1 for hit in hits)


def test_rows_of_the_dead_are_given_back(docs: Path, index: Index) -> None:
    index.add(docs)
    before = index.search("Rome", mode="dense", inside=docs / "1.txt")
    sizes = index.sizes
    for number in (0, 2, 3):
        (docs / f"{number}.txt").unlink()
    index.add(docs, forget=True)
    assert index.sizes["vectors"] == (len(index) + 1) * 16 * 2
    assert index.sizes["tokens"] < sizes["tokens"] / 2
    assert len(list(index.folder.glob("*.bin"))) == 2
    after = index.search("Rome", mode="dense")
    assert [hit.start for hit in after] == [hit.start for hit in before]
    np.testing.assert_allclose([hit.score for hit in after], [hit.score for hit in before], atol=1e-6)
    assert {hit.file for hit in index.search("river", mode="bm25")} == {docs / "1.txt"}
    index.verify()


def test_what_is_found_stands_where_it_says(shared: Index) -> None:
    for mode in MODES:
        hits = shared.search("the river Thames in London", top=7, mode=mode)
        assert len(hits) == 7
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        for hit in hits:
            whole = hit.file.read_text(encoding="utf-8")
            assert hit.text == whole[hit.start : hit.end] == hit.text.strip()
            assert hit.line == 1 + whole.count("\n", 0, hit.start)
            assert hit.answer == whole[hit.answer_start : hit.answer_end]
            assert hit.answer_line == 1 + whole.count("\n", 0, hit.answer_start)
            assert hit.start <= hit.answer_start < hit.answer_end <= hit.end
            assert (hit.dense is None) == (mode == "bm25")
        assert "river" in repr(hits)
        assert "<mark>" in hits._repr_html_()


def test_pages_lines_and_sections_are_those_of_the_passage_and_of_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page break inside of a passage: the answer stands on another page and line than the passage."""
    begin = "# Lease\n\n## Rent\n\n" + "\n\n".join(
        f"Nothing of interest stands in line {i}." for i in range(40)
    )
    behind = "\nThe zebra pays 700 dollars on Monday.\n"
    content = f"{begin}\n\n{behind}"
    page = content.index("The zebra")

    def paged(path: Path, *_: object) -> Document:
        return Document(**vars(lease) | {"source": path, "pages": (0, page)})

    lease = read(written(tmp_path / "docs", {"lease.md": content}) / "lease.md")
    monkeypatch.setattr("longspan.text.documents._read", paged)
    index = by_words(tmp_path, {"lease.md": content})
    hit = index.search("How much does the zebra pay?")[0]
    assert hit.answer == "The zebra pays 700 dollars on Monday."
    assert (hit.page, hit.answer_page) == (1, 2)
    whole = (tmp_path / "docs" / "lease.md").read_text(encoding="utf-8")
    assert hit.answer_line == 1 + whole[: whole.index("The zebra")].count("\n")
    assert hit.line is not None
    assert hit.line < hit.answer_line
    assert hit.section == ("Lease", "Rent")
    assert hit.title == "Lease"


def test_a_search_can_stay_inside_some_files(shared: Index) -> None:
    file = shared.files[3]
    for mode in MODES:
        for by in ("passage", "document"):
            assert {hit.file for hit in shared.search("the river", mode=mode, by=by, inside=[file])} == {file}


@pytest.mark.parametrize(
    "query",
    ['"', "NEAR(a b", "a AND", "*", "-", "' OR 1", "文字", "\0", "_", "😀", "file:", '"no such words"'],
)
def test_no_query_breaks_a_search(shared: Index, query: str) -> None:
    for mode in MODES:
        for by in ("passage", "document"):
            assert all(np.isfinite(hit.score) for hit in shared.search(query, mode=mode, by=by))


def test_an_empty_index_finds_nothing(tmp_path: Path, index: Index) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank.txt").write_text(" \n", encoding="utf-8")
    assert index.add([tmp_path / "empty"]).read == 0
    assert repr(index.search("anything")) == "nothing found for 'anything'"
    assert index.add(tmp_path / "blank.txt").added == 1
    hits = index.search("anything")
    assert (len(hits), hits.answered) == (0, False)
    index.verify()


def test_a_file_without_text_has_no_vector_and_is_not_read_again(docs: Path, index: Index) -> None:
    for name, content in (("0-empty.txt", ""), ("blank.txt", " \n\n"), ("zz-empty.md", "")):
        (docs / name).write_text(content, encoding="utf-8")
    report = index.add(docs)
    assert (report.added, report.read, index.share_read) == (7, 4, 1.0)
    blank = [entry for entry in index._store.entries() if not entry.characters or not entry.passages]
    assert len(blank) == 2  # equal files are one document
    assert not any(entry.is_read for entry in blank)
    assert not index._store.vectors()[blank[0].slot].any()
    for mode in MODES:
        for by in ("passage", "document"):
            found = index.search("the river", top=99, mode=mode, by=by)
            assert {hit.file.name for hit in found} <= {f"{number}.txt" for number in range(4)}
    index.verify()
    assert index.embed().read == 0
    for number in range(3):
        (docs / f"{number}.txt").unlink()
    index.add(docs, forget=True)  # rows move
    index.verify()
    assert len(index.search("the river", mode="dense")) > 0


def test_a_relative_folder_of_a_model_is_stored_as_an_absolute_one(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny().save(tmp_path / "here" / "model")
    monkeypatch.chdir(tmp_path / "here")
    with Index.open(tmp_path / "own", "model") as index:
        monkeypatch.chdir(tmp_path)
        index.add(docs)
        assert index.model == str(tmp_path / "here" / "model")
    assert len(Index.open(tmp_path / "own").search("Rome")) > 0


def test_mistakes_are_told(index: Index, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`query` must be a text that is not empty"):
        index.search(" ")
    with pytest.raises(InputError, match=r"`mode` must be one of hybrid, dense, bm25, but is 'fast'"):
        index.search("a", mode="fast")
    with pytest.raises(InputError, match=r"`by` must be one of passage, document, but is 'chapter'"):
        index.search("a", by="chapter")
    with pytest.raises(InputError, match=r"`top` must be at least 1"):
        index.search("a", top=0)
    with pytest.raises(InputError, match="nowhere"):
        index.add(tmp_path / "nowhere")
    with pytest.raises(InputError, match="`tokens` must be one of"):
        Index.open(tmp_path / "other", tokens="2bit")
    written(tmp_path / "mine", {"letter.txt": ""})
    with pytest.raises(InputError, match="`index` must be an index, an empty folder or a new one"):
        Index.open(tmp_path / "mine")


def test_another_model_is_refused(docs: Path, index: Index) -> None:
    index.add(docs)
    other = Index.open(index.folder, tiny())
    assert other.add(docs).unchanged == 4
    assert other.search("Rome", mode="dense")[0].file.exists()
    changed = other_reader()
    with pytest.raises(InputError, match="`model` must be the one that the index was built with"):
        Index.open(index.folder, changed).search("Rome")
    assert len(Index.open(index.folder, changed).search("Rome", mode="bm25")) > 0


def test_a_model_is_known_by_its_files_until_they_change(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny().save(tmp_path / "model")
    with Index.open(tmp_path / "own", tmp_path / "model") as index:
        index.add(docs)
    with monkeypatch.context() as patched:
        patched.setattr("longspan.search.own_model.fingerprint", lambda reader: pytest.fail("read again"))
        assert len(Index.open(tmp_path / "own").search("Rome")) > 0
    weights = tmp_path / "model" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-2] ^= 1  # in the exponent of the last number
    weights.write_bytes(data)
    with pytest.raises(InputError, match=r"which has changed since'\. Rebuild the index with --rebuild"):
        Index.open(tmp_path / "own").search("Rome")


def other_reader() -> Reader:
    return Reader(tiny().model, tiny().tokenizer, prompts={"query": "find: "}, overflow="window")


def test_a_model_that_was_fine_is_refused_once_another_process_has_rebuilt_the_index(
    docs: Path, index: Index
) -> None:
    index.add(docs)
    with Index.open(index.folder, other_reader()) as other:
        other.clear()
        other.add(docs)
    (docs / "new.txt").write_text(text(8), encoding="utf-8")
    for use in (lambda: index.add(docs), lambda: index.search("Rome")):
        with pytest.raises(InputError, match=r"built with \(a Reader\), but is 'another Reader'"):
            use()
    assert index._store.pending()[0].characters == len(text(8))
    with Index.open(index.folder, other_reader()) as other:
        assert other.embed().read == 1


def test_a_model_is_written_down_again_once_another_process_has_cleared_the_index(
    docs: Path, index: Index
) -> None:
    index.add(docs)
    Index.open(index.folder).clear()
    index.add(docs)
    with pytest.raises(InputError, match="`model` must be the one"):
        Index.open(index.folder, other_reader()).search("Rome")


def test_the_model_of_an_index_is_loaded_anew_when_another_process_has_chosen_another(
    docs: Path, tmp_path: Path
) -> None:
    tiny().save(tmp_path / "first")
    other_reader().save(tmp_path / "second")
    Index.open(tmp_path / "index", tmp_path / "first").add(docs)
    index = Index.open(tmp_path / "index")
    before = index.reader
    assert index.reader is before
    with Index.open(tmp_path / "index", tmp_path / "second") as other:
        other.clear()
        other.add(docs)
    assert len(index.search("Rome")) > 0
    assert index.reader.prompts == {"query": "find: "}


def test_vectors_are_not_written_once_the_index_is_rebuilt_while_the_model_reads(
    docs: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*given: object, **named: object) -> object:
        other = Store(index.folder)
        with other.db.transaction():
            other.db.put(fingerprint="another")
        return encode(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("longspan.search.passages.encode", slow)
    with pytest.raises(LongspanError, match=r"was rebuilt\. Run this again"):
        index.add(docs)
    assert len(index._store.pending()) == 4


def test_an_index_of_a_reader_without_a_name_says_that_it_must_be_passed(
    docs: Path, tmp_path: Path, index: Index
) -> None:
    index.add(docs)
    message = (
        r"`model` must be the Reader that the index was built with, but is None\. Pass it: Index\.open\("
    )
    with pytest.raises(InputError, match=message):
        Index.open(index.folder).search("Rome")
    tiny().save(tmp_path / "model")
    assert len(Index.open(index.folder, tmp_path / "model").search("Rome")) > 0
    assert Index.open(index.folder).model == str(tmp_path / "model")
    assert len(Index.open(index.folder).search("Rome")) > 0


@pytest.mark.parametrize("kind", TOKENS)
def test_tokens_are_kept_as_asked_and_an_index_stays_with_them(docs: Path, tmp_path: Path, kind: str) -> None:
    index = Index.open(tmp_path / "index", tiny(), tokens=kind)
    index.add(docs)
    bytes_each = {"1bit": 16 // 8 + 4, "8bit": 16 + 4, "off": 0}[kind]
    codes = index._store.tokens()
    expected = sum(len(index.reader.tokenizer.encode(text(n))) - 2 for n in range(4)) if bytes_each else 0
    assert codes.shape == (expected, bytes_each)
    index.verify()
    assert len(index.search("the river", top=5)) == 5
    assert Index.open(index.folder, tiny()).tokens == kind
    other = Index.open(index.folder, tiny(), tokens=TOKENS[TOKENS.index(kind) - 1])
    (docs / "new.txt").write_text(text(8), encoding="utf-8")
    with pytest.raises(InputError, match=f"`tokens` must be {kind}, as the index was built"):
        other.add(docs)


def test_the_vector_of_a_document_does_not_depend_on_what_is_read_with_it(tmp_path: Path) -> None:
    whole, parts = (Index.open(tmp_path / name, tiny()) for name in ("whole", "parts"))
    docs = filled(tmp_path / "docs", 5)
    whole.add(docs)
    for number in (3, 0, 4, 2, 1):
        parts.add(docs / f"{number}.txt")
    for number in range(5):
        near = [
            index.search("Rome", top=99, mode="dense", inside=docs / f"{number}.txt")
            for index in (whole, parts)
        ]
        assert [hit.start for hit in near[0]] == [hit.start for hit in near[1]]
        first, second = ([hit.dense or 0.0 for hit in hits] for hits in near)
        np.testing.assert_allclose(first, second, atol=1e-3)


def test_documents_are_ranked_as_wholes_with_their_best_passages(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index", tiny())
    index.add(filled(tmp_path / "docs", 6))
    query = text(4)[100:400]
    vector = encode_query(index.reader, query).vector
    expected = {}
    for number in range(6):
        passages = [row.text for row in index._store.passages(_entry(index, f"{number}.txt"))]
        (own,) = encode(index.reader, [passages])
        cosines = own.tables.vectors @ vector
        best = np.sort(cosines[1:])[::-1]
        expected[f"{number}.txt"] = (cosines[0] + best[0] + best[:3].mean()) / 3
    hits = index.search(query, 6, mode="dense", by="document")
    assert {hit.file.name for hit in hits} == {*expected}
    assert [hit.score for hit in hits] == sorted([hit.score for hit in hits], reverse=True)
    for hit in hits:  # a softmax; vectors are stored in half precision
        less = expected[hits[0].file.name] - expected[hit.file.name]
        assert np.log(hits[0].score / hit.score) == pytest.approx(SHARPNESS["dense"] * less, abs=0.1)
    for mode in ("hybrid", "bm25"):
        names = [hit.file.name for hit in index.search(query, 6, mode=mode, by="document")]
        assert sorted(names) == sorted(expected)


def _entry(index: Index, name: str) -> Entry:
    (number,) = [file.document for file in index._store.files() if file.path.name == name]
    (entry,) = index._store.entries(f"id = {number}")
    return entry


def test_files_are_removed_pruned_and_cleared(docs: Path, index: Index) -> None:
    index.add(docs)
    assert index.remove(docs / "0.txt") == 1
    assert index.remove(docs / "0.txt") == 0
    assert (docs / "0.txt").exists()
    (docs / "1.txt").unlink()
    assert index.prune() == 1
    assert index.files == [docs / "2.txt", docs / "3.txt"]
    assert {hit.file for hit in index.search("document", top=99, mode="bm25")} == {*index.files}
    index.verify()
    index.clear()
    assert (index.files, index.model, len(index), index.search("Rome").answered) == ([], None, 0, False)
    index.verify()
    assert index.add(docs).read == 3
    assert index.remove(docs) == 3


def test_a_file_outside_of_what_is_brought_up_to_date_stays(docs: Path, index: Index) -> None:
    index.add(docs)
    (docs / "1.txt").unlink()
    assert index.add(docs / "2.txt").removed == 0
    assert len(index.files) == 4


def test_files_that_changed_and_cannot_be_read_are_named_and_forgotten(
    docs: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add(docs)
    os.utime(docs / "0.txt", ns=(1, 1))
    (docs / "broken.pdf").write_bytes(b"%PDF-1.4 no more than this")

    def denied(path: Path) -> bytes:
        if path.name == "0.txt":
            raise PermissionError(13, "Permission denied")
        return digest(path)

    monkeypatch.setattr(compare, "digest", denied)
    report = index.add(docs)
    assert {path.name for path, _ in report.failed} == {"0.txt", "broken.pdf"}
    assert index.files == [docs / f"{number}.txt" for number in range(1, 4)]
    assert len(index.search("document", mode="bm25", inside=docs / "0.txt")) == 0


def test_results_are_plain_data(shared: Index) -> None:
    (hit,) = shared.search("Rome", top=1)
    plain = json.loads(json.dumps(hit.as_dict()))
    assert {"file", "same", "title", "section", "page", "line", "start", "end", "text"} <= {*plain}
    assert {"answer_start", "answer_end", "answer_page", "answer_line", "score", "dense", "bm25"} <= {*plain}


def test_passages_of_an_index_are_the_whole_text(shared: Index) -> None:
    for number in range(4):
        rows = shared._store.passages(_entry(shared, f"{number}.txt"))
        assert "".join(row.text for row in rows) == text(number)
        assert max(len(row.text) for row in rows[:-1]) <= LONGEST


def test_a_folder_whose_index_was_only_partly_discarded_can_be_used(tmp_path: Path) -> None:
    folder = written(tmp_path / "index", {"index.lock": "", "vectors-0.f16": "", "fine-0.f16": ""})
    with Index.open(folder) as index:
        index.add(filled(tmp_path / "docs"), vectors=False)
        index.clear()
    assert sorted(path.name for path in folder.iterdir()) == ["index.lock", "index.sqlite"]
    with pytest.raises(InputError, match="an empty folder or a new one"):
        Index.open(written(tmp_path / "foreign", {"vectors-0.f16": ""}))


@pytest.mark.parametrize("harm", ["garbage", "cut", "vectors", "gone"])
def test_a_damaged_index_says_so_and_how_to_rebuild_it(docs: Path, index: Index, harm: str) -> None:
    index.add(docs)
    folder = index.folder
    index.close()
    database, vectors = folder / "index.sqlite", folder / "vectors-0.bin"
    if harm == "garbage":
        database.write_bytes(b"x" * 5000)
    elif harm == "cut":
        database.write_bytes(database.read_bytes()[:20000])
    elif harm == "vectors":
        vectors.write_bytes(vectors.read_bytes()[:-1])
    else:
        vectors.unlink()
    with pytest.raises(CheckpointError, match=r"is damaged: .* longspan index --index .* --rebuild"):
        Index.open(folder, tiny()).search("Rome")


def test_a_query_in_which_the_model_sees_nothing_is_searched_by_words(
    shared: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a lone accent, which a WordPiece tokenizer drops."""

    def without_tokens(reader: Reader, query: str) -> QueryVectors:
        vectors = encode_query(reader, query)
        return vectors._replace(tokens=vectors.tokens[:0], offsets=vectors.offsets[:0])

    monkeypatch.setattr("longspan.search.passages.encode_query", without_tokens)
    assert len(shared.search("\u0301")) == 0
    assert len(shared.search("river", mode="dense")) == 0
    assert "river" in shared.search("river")[0].text


def test_a_query_may_be_a_page_long(shared: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    query = " ".join(f"word{i} river" for i in range(700))
    hits = shared.search(query, top=5)
    monkeypatch.setattr("longspan.search.meaning.PRODUCTS", 1000)
    again = shared.search(query, top=5)
    assert [hit.start for hit in again] == [hit.start for hit in hits]
    assert [hit.score for hit in again] == pytest.approx([hit.score for hit in hits])
