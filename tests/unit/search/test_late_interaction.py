"""An index of a late-interaction model: token vectors of its own width, ranked by its own MaxSim."""

from pathlib import Path

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.reader import Reader
from longspan.search import compaction, meaning
from longspan.search.index import Index
from longspan.search.passages import encode, encode_query
from longspan.search.rebuild import rebuilding
from longspan.search.token_codes import unpack
from longspan.shapes import FloatArray
from longspan.tasks.late_interaction import Settings, skipped_ids
from unit.search.folders import LATE, filled, late, text
from unit.search.test_passages import cut

QUERY = "who lives near the old bridge?"


def token_vectors(reader: Reader, pieces: list[str]) -> list[FloatArray]:
    """The vectors of each passage's tokens in a document that is read whole, by the Reader's own verb."""
    whole = "".join(pieces)
    settings = Settings()
    encoding = reader.tokenizer.encode(settings.document_prefix + whole)
    kept = ~np.isin(encoding.ids, skipped_ids(reader.tokenizer, settings))
    vectors = reader.encode_document_tokens(whole)
    assert len(vectors) == kept.sum()
    starts = encoding.offsets[kept, 0] - len(settings.document_prefix)
    own = (encoding.source[kept] == 0) & (starts >= 0)
    ends = np.cumsum([len(piece) for piece in pieces])
    passage = np.searchsorted(ends, starts[own], side="right")
    return [vectors[own][passage == number] for number in range(len(pieces))]


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("late") / "docs", 4)


@pytest.fixture(scope="module")
def index(docs: Path) -> Index:
    found = Index.open(docs.parent / "index", late(), tokens="8bit")
    found.add(docs, progress=False)
    return found


@pytest.mark.parametrize(("kind", "least"), [("1bit", 0.5), ("8bit", 0.999)])
def test_passages_have_the_vectors_of_their_tokens_but_of_those_on_the_skip_list(
    kind: str, least: float
) -> None:
    made, pieces = late(), cut(text(1))
    (found,) = encode(made, [pieces], kind)
    expected = token_vectors(made, pieces)
    assert found.tables.vectors.shape == (len(pieces) + 1, LATE)
    assert found.tables.token_ends.tolist() == np.cumsum([len(own) for own in expected]).tolist()
    codes, scales, worth = unpack(found.tables.tokens, LATE)
    decoded = codes * scales[:, None]
    cosines = (decoded * np.concatenate(expected)).sum(1) / np.linalg.norm(decoded, axis=1)
    assert cosines.min() > least
    begins = np.append(0, found.tables.token_ends)
    for number, own in enumerate(expected):
        mean = (own * worth[begins[number] : begins[number + 1], None]).sum(0)
        np.testing.assert_allclose(found.tables.vectors[1 + number], mean / np.linalg.norm(mean), atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(found.tables.vectors, axis=1), 1, atol=1e-5)


def test_a_query_is_what_the_model_makes_of_queries() -> None:
    made = late()
    found = encode_query(made, QUERY)
    np.testing.assert_allclose(found.tokens, made.encode_query_tokens(QUERY), atol=1e-6)
    assert len(found.tokens) == Settings().query_length
    words = found.offsets[found.offsets[:, 0] >= 0]
    assert "".join(QUERY[a:b] for a, b in words) == QUERY.replace(" ", "")
    assert (found.offsets[-3:] == -1).all()
    assert found.own


def test_a_query_longer_than_the_model_is_read_in_windows() -> None:
    made, query = late(), " ".join(["bridge"] * 900)
    found = encode_query(made, query)
    assert len(found.tokens) == len(made.tokenizer.encode(Settings().query_prefix + query).ids) > 512
    with pytest.raises(InputError, match="`texts` must be at most 512 tokens long"):
        made.encode_query_tokens(query)


def test_dense_search_is_in_the_order_of_max_sim(index: Index) -> None:
    made, scores = late(), {}
    query = made.encode_query_tokens(QUERY)
    for entry in index._store.entries():
        rows = index._store.passages(entry)
        documents = token_vectors(made, [row.text for row in rows])
        for row, score in zip(rows, made.max_sim([query], documents)[0], strict=True):
            scores[entry.title, row.text.strip()] = float(score) / len(query)
    hits = index.search(QUERY, top=len(scores), mode="dense")
    assert len(hits) == len(scores)
    found = [scores[hit.title, hit.text] for hit in hits]
    assert [hit.dense for hit in hits] == pytest.approx(found, abs=0.004)
    assert np.diff(found).max() < 0.004  # as exact as the codes are
    assert found[0] - found[-1] > 0.02


@pytest.mark.parametrize("by", ["passage", "document"])
@pytest.mark.parametrize("mode", ["hybrid", "dense", "bm25"])
def test_all_modes_find_something_and_cite_an_answer(index: Index, mode: str, by: str) -> None:
    hits = index.search(QUERY, top=3, mode=mode, by=by)
    assert len(hits) == 3
    assert all(hit.start <= hit.answer_start < hit.answer_end <= hit.end for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    if mode == "hybrid":
        words = max(index.search(QUERY, top=99, mode="bm25"), key=lambda hit: hit.bm25 or 0)
        assert words.text in [hit.text for hit in index.search(QUERY, top=20)]


def test_the_answering_sentence_is_found_by_tokens(index: Index) -> None:
    view = index._view()
    signals = view.signals(QUERY, encode_query(late(), QUERY))
    row = int(np.flatnonzero(view._shape.lengths > 0)[2])
    found = view._tokens(row, view.texts(np.array([row]))[row].text, 0, signals)
    assert found is not None
    assert found[1].shape == (len(found[0]), Settings().query_length)


def test_passages_beyond_what_is_compared_keep_their_cosines(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, vectors = index._view(), encode_query(late(), QUERY)
    rows = np.flatnonzero(view._shape.lengths > 0)
    whole = meaning.own_scores(view, vectors, rows)
    monkeypatch.setattr(meaning, "AT_ONCE", 50)
    np.testing.assert_array_equal(meaning.own_scores(view, vectors, rows).scores, whole.scores)
    assert not np.isnan(whole.scores[rows]).any()
    monkeypatch.setattr(meaning, "MOST", 300)
    some = meaning.own_scores(view, vectors, rows)
    compared = ~np.isnan(some.scores)
    assert 0 < compared.sum() < len(rows)
    np.testing.assert_array_equal(some.scores[compared], whole.scores[compared])
    cosines = meaning.cosines(view, vectors.vector)
    np.testing.assert_array_equal(some.near[~compared], cosines[~compared])
    assert cosines[compared].min() >= cosines[rows][~compared[rows]].max()
    assert some.near[compared].mean() == pytest.approx(cosines[compared].mean(), abs=1e-5)
    assert some.near[compared].std() == pytest.approx(cosines[compared].std(), rel=1e-3)
    assert len(index.search(QUERY, top=5, mode="dense")) == 5


def test_scores_of_any_scale_are_brought_to_that_of_the_weights() -> None:
    own = meaning.Own(np.zeros(1), np.zeros(1), (0.8, 0.02), (0.9, 0.01))
    other = meaning.Own(np.zeros(1), np.zeros(1), (0.1, 0.2), (0.2, 0.1))
    z, words = np.array([-1.0, 0.0, 2.0]), np.array([3.0, 4.0, 5.0])
    scaled = own.scaled({"max_sim": 0.9 + 0.01 * z, "cosine": 0.8 + 0.02 * z, "covered": words})
    again = other.scaled({"max_sim": 0.2 + 0.1 * z, "cosine": 0.1 + 0.2 * z, "covered": words})
    for name in scaled:
        np.testing.assert_allclose(scaled[name], again[name])
    assert scaled["covered"] is words


def test_updates_and_compaction_leave_what_a_new_index_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "WASTE", 0.1)
    docs = filled(tmp_path / "docs", 4)
    index = Index.open(tmp_path / "index", late())
    index.add(docs, progress=False)
    generation = index._store.db.number("generation")
    (docs / "1.txt").unlink()
    (docs / "2.txt").write_text(text(9), encoding="utf-8")
    index.add(docs, progress=False)
    assert index._store.db.number("generation") > generation
    index.verify()
    fresh = Index.open(tmp_path / "fresh", late())
    fresh.add(docs, progress=False)
    assert index._store.size_of("width") == LATE
    assert index._store.size_of("token_bytes") == -(-LATE // 8) + 4
    for mode in ("hybrid", "dense"):
        ours, theirs = (each.search(QUERY, top=9, mode=mode) for each in (index, fresh))
        assert [(hit.file, hit.start) for hit in ours] == [(hit.file, hit.start) for hit in theirs]
        assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in theirs], rel=1e-5)


def test_a_folder_is_loaded_searched_and_rebuilt_by_its_name(tmp_path: Path) -> None:
    late().save(tmp_path / "model")
    docs = filled(tmp_path / "docs", 2)
    with Index.open(tmp_path / "index", tmp_path / "model") as index:
        index.add(docs, progress=False)
    with Index.open(tmp_path / "index") as index:
        assert index.reader.task == "late-interaction"
        first = index.search(QUERY, mode="dense")
        with rebuilding(index.folder, index.model) as new:
            new.add(docs, progress=False)
    with Index.open(tmp_path / "index") as index:
        assert [hit.text for hit in index.search(QUERY, mode="dense")] == [hit.text for hit in first]
        index.verify()


def test_another_prefix_is_another_model(tmp_path: Path) -> None:
    docs = filled(tmp_path / "docs", 1)
    Index.open(tmp_path / "index", late()).add(docs, progress=False)
    Index.open(tmp_path / "index", late()).search(QUERY)
    other = late()
    other.config = {"late_interaction": {"query_prefix": "ask: "}}
    with pytest.raises(InputError, match="`model` must be the one that the index was built with"):
        Index.open(tmp_path / "index", other).search(QUERY)


def test_an_index_without_tokens_is_refused(tmp_path: Path) -> None:
    docs = filled(tmp_path / "docs", 1)
    refused = pytest.raises(InputError, match="`tokens` must be 1bit or 8bit for a model of late interaction")
    with Index.open(tmp_path / "index", late(), tokens="off") as index, refused:
        index.add(docs, progress=False)


def test_passages_of_signs_alone_have_no_tokens_and_do_no_harm(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "signs.txt").write_text("-- ... -- !!! " * 9, encoding="utf-8")
    (docs / "words.txt").write_text(text(1), encoding="utf-8")
    with Index.open(tmp_path / "index", late()) as index:
        index.add(docs, progress=False)
        for mode in ("hybrid", "dense"):
            hits = index.search(QUERY, top=99, mode=mode)
            assert hits[0].file.name == "words.txt"
            assert all(np.isfinite(hit.score) for hit in hits)
        index.verify()
