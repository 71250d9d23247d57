"""The index: what is encoded, what is found, and what survives."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import longspan
from longspan.errors import CheckpointError, InputError
from longspan.search.index import Index
from longspan.search.passages import encode
from longspan.search.rank import passage_scores, scan
from unit.search.folders import filled, text, tiny


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return filled(tmp_path / "docs")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.open(tmp_path / "index", tiny())


def test_only_what_is_new_or_changed_is_encoded(docs: Path, index: Index) -> None:
    assert index.add(docs).added == 4
    again = index.add(docs)
    assert (again.encoded, again.unchanged) == (0, 4)
    (docs / "1.txt").write_text(text(9), encoding="utf-8")
    os.utime(docs / "2.txt", ns=(1, 1))  # touched, but the same
    (docs / "new.md").write_text("A small new text.", encoding="utf-8")
    third = index.add(docs)
    assert (third.added, third.changed, third.unchanged) == (1, 1, 3)
    assert len(index.files) == 5
    index.verify()


def test_deleted_files_are_forgotten_and_renamed_ones_are_not_read_again(docs: Path, index: Index) -> None:
    index.add(docs)
    (docs / "0.txt").unlink()
    (docs / "1.txt").rename(docs / "Ünï 文字.txt")
    report = index.add(docs)
    assert (report.removed, report.moved, report.encoded) == (1, 1, 0)
    assert index.files == [docs / "2.txt", docs / "3.txt", docs / "Ünï 文字.txt"]
    assert docs / "Ünï 文字.txt" in {hit.file for hit in index.search("Document 1", mode="bm25")}


def test_rows_of_the_dead_are_given_back(docs: Path, index: Index) -> None:
    index.add(docs)
    for number in (0, 2, 3):
        (docs / f"{number}.txt").unlink()
    before = index.search("Rome", mode="dense", inside=docs / "1.txt")
    index.add(docs)
    files = list(index.folder.glob("vectors-*"))
    assert [path.stat().st_size for path in files] == [(len(index) + 1) * 16 * 2]
    after = index.search("Rome", mode="dense")
    assert [hit.start for hit in after] == [hit.start for hit in before]
    np.testing.assert_allclose([hit.score for hit in after], [hit.score for hit in before], atol=1e-6)
    assert {hit.file for hit in index.search("river", mode="bm25")} == {docs / "1.txt"}
    index.verify()


def test_the_scan_is_exact() -> None:
    draw = np.random.default_rng(1)
    middle = draw.standard_normal(13)  # about which all vectors lie, so that half precision confuses them
    vectors = middle + 0.01 * draw.standard_normal((1009, 13))
    table = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    query = (middle / np.linalg.norm(middle)).astype(np.float32)
    for rows in (np.arange(3, 1009, 2), np.arange(5, 1009, 101)):
        products = table[rows].astype(np.float64) @ query
        for count in (1, 7, len(rows), 5000):
            found = scan(table, query, rows, count)
            assert len(found) == min(count, len(rows))
            np.testing.assert_allclose(
                list(found.values()), np.sort(products)[::-1][:count], atol=1e-6, rtol=0
            )
            np.testing.assert_allclose(
                list(found.values()), table[list(found)].astype(np.float64) @ query, atol=1e-6, rtol=0
            )


def test_what_is_found_stands_where_it_says(docs: Path, index: Index) -> None:
    index.add(docs)
    for mode in ("dense", "bm25", "hybrid"):
        found = index.search("the river Thames in London", top=7, mode=mode)
        assert len(found) == 7
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
        for hit in found:
            whole = hit.file.read_text(encoding="utf-8")
            assert hit.text == whole[hit.start : hit.end]
            assert hit.line == 1 + whole.count("\n", 0, hit.start)
            assert (hit.dense is None) <= (mode != "dense")
        assert "river" in repr(found)
        assert "<mark>" in found._repr_html_()


def test_a_search_can_stay_inside_some_files(docs: Path, index: Index) -> None:
    index.add(docs)
    for mode in ("dense", "bm25", "hybrid"):
        found = index.search("the river", mode=mode, inside=[docs / "3.txt"])
        assert {hit.file for hit in found} == {docs / "3.txt"}


@pytest.mark.parametrize("query", ['"', "NEAR(a b", "a AND", "*", "-", "' OR 1", "文字", "\0", "_", "😀"])
def test_no_query_is_syntax(docs: Path, index: Index, query: str) -> None:
    index.add(docs)
    for mode in ("dense", "bm25", "hybrid"):
        index.search(query, mode=mode)


def test_an_empty_index_finds_nothing(tmp_path: Path, index: Index) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank.txt").write_text(" \n", encoding="utf-8")
    assert index.add([tmp_path / "empty"]).encoded == 0
    assert repr(index.search("anything")) == "nothing found for 'anything'"
    assert index.add(tmp_path / "blank.txt").added == 1
    assert len(index.search("anything")) == 0


def test_mistakes_are_told(index: Index, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`query` must be a text that is not empty"):
        index.search(" ")
    with pytest.raises(InputError, match=r"`mode` must be one of hybrid, dense, bm25, but is 'fast'"):
        index.search("a", mode="fast")
    with pytest.raises(InputError, match=r"`top` must be at least 1"):
        index.search("a", top=0)
    with pytest.raises(InputError, match="nowhere"):
        index.add(tmp_path / "nowhere")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with pytest.raises(InputError, match="`index` must be an index, an empty folder or a new one"):
        Index.open(tmp_path / "mine")


def test_another_model_is_refused(docs: Path, index: Index) -> None:
    index.add(docs)
    other = Index.open(index.folder, tiny())
    assert other.add(docs).unchanged == 4
    assert other.search("Rome", mode="dense")[0].file.exists()
    changed = longspan.Reader(tiny().model, tiny().tokenizer, prompts={"query": "find: "})
    with pytest.raises(InputError, match="`model` must be the one that the index was built with"):
        Index.open(index.folder, changed).search("Rome")


def test_a_model_is_known_by_its_files_until_they_change(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny().save(tmp_path / "model")
    with Index.open(tmp_path / "own", tmp_path / "model") as index:
        index.add(docs)
    with monkeypatch.context() as patched:
        patched.setattr("longspan.search.index.fingerprint", lambda reader: pytest.fail("read again"))
        assert len(Index.open(tmp_path / "own").search("Rome")) > 0
    weights = tmp_path / "model" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-2] ^= 1  # in the exponent of the last number
    weights.write_bytes(data)
    with pytest.raises(InputError, match=r"which has changed since'\. Rebuild the index with --rebuild"):
        Index.open(tmp_path / "own").search("Rome")


def test_two_open_indexes_see_what_either_writes(docs: Path, index: Index) -> None:
    other = Index.open(index.folder, tiny())
    assert len(other.search("Rome")) == 0
    index.add(docs)
    assert len(other.search("Rome")) > 0


@pytest.mark.parametrize("harm", ["garbage", "cut", "vectors", "gone"])
def test_a_damaged_index_says_so_and_how_to_rebuild_it(docs: Path, index: Index, harm: str) -> None:
    index.add(docs)
    folder = index.folder
    index.close()
    database, vectors = folder / "index.sqlite", folder / "vectors-0.f16"
    if harm == "garbage":
        database.write_bytes(b"x" * 5000)
    elif harm == "cut":
        database.write_bytes(database.read_bytes()[:9000])
    elif harm == "vectors":
        vectors.write_bytes(vectors.read_bytes()[:-1])
    else:
        vectors.unlink()
    with pytest.raises(
        CheckpointError, match=r"is damaged: .* longspan index PATH\.\.\. --index .* --rebuild"
    ):
        Index.open(folder, tiny()).search("Rome")


def test_a_flipped_bit_is_found_by_its_checksum(docs: Path, index: Index) -> None:
    index.add(docs)
    path = index.folder / "vectors-0.f16"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="has changed"):
        index.verify()


RUN = """
import sys, unit.search.folders as f, longspan.search.index as i
i.GROUP = 1
print(i.Index.open(sys.argv[1], f.tiny()).add(sys.argv[2]).encoded)
"""


def test_a_killed_run_leaves_an_index_that_goes_on(tmp_path: Path) -> None:
    docs, folder = filled(tmp_path / "docs", 8), tmp_path / "index"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", RUN, str(folder), str(docs)]
    draw = random.Random(3)
    known = 0
    for _ in range(2):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while process.poll() is None and known == _count(folder):
            time.sleep(0.005)
        time.sleep(draw.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with Index.open(folder, tiny()) as index:
            index.verify()
            assert len(index.files) >= known
            known = len(index.files)
    rest = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(rest.stdout) == 8 - known
    whole = Index.open(tmp_path / "other", tiny())
    whole.add(docs)
    with Index.open(folder, tiny()) as index:
        index.verify()
        found, expected = (one.search("the river", mode="dense") for one in (index, whole))
        assert [(hit.file, hit.start) for hit in found] == [(hit.file, hit.start) for hit in expected]


def _count(folder: Path) -> int:
    """Files in the index so far."""
    if not (folder / "index.sqlite").exists():
        return 0
    with Index.open(folder) as index:
        return len(index.files)


def test_results_are_plain_data(docs: Path, index: Index) -> None:
    index.add(docs)
    (hit,) = index.search("Rome", top=1)
    keys = ["file", "page", "line", "start", "end", "score", "dense", "bm25", "text"]
    assert list(json.loads(json.dumps(hit.as_dict()))) == keys


def test_documents_are_ranked_as_wholes_with_their_best_passages(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index", tiny())
    index.add(filled(tmp_path / "docs", 6))
    query = text(4)[100:400]
    vector = index.reader.encode_query(query, normalize=True)
    expected = {}
    for number in range(6):
        (one,) = encode(index.reader, [text(number)])
        scores = passage_scores(vector[None], one.vectors[1:], one.parts)[0]
        alike = float(one.vectors[0] @ vector)
        expected[f"{number}.txt"] = (alike + scores.max()) / 2
    hits = index.search(query, 6, mode="dense", by="document")
    assert {hit.file.name for hit in hits} == {*expected}
    assert [hit.score for hit in hits] == sorted([hit.score for hit in hits], reverse=True)
    for hit in hits:  # vectors are stored in half precision
        assert hit.score == pytest.approx(expected[hit.file.name], abs=2e-3)
    for mode in ("hybrid", "bm25"):
        names = [hit.file.name for hit in index.search(query, 6, mode=mode, by="document")]
        assert sorted(names) == sorted(expected)
    with pytest.raises(InputError, match="by"):
        index.search(query, by="chapter")


def test_meaning_is_that_of_a_passage_and_of_its_best_part(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "index", tiny())
    index.add(filled(tmp_path / "docs", 3))
    vector = index.reader.encode_query("the old bridge", normalize=True)
    encoded = encode(index.reader, [text(number) for number in range(3)])
    scores = np.concatenate([passage_scores(vector[None], one.vectors[1:], one.parts)[0] for one in encoded])
    hits = index.search("the old bridge", 5, mode="dense")
    np.testing.assert_allclose([hit.score for hit in hits], np.sort(scores)[::-1][:5], atol=2e-3)
