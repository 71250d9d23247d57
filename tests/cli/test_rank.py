"""`longspan rank` and `longspan search --rerank` as people meet them."""

import json
from pathlib import Path

import pytest

from longspan.cli import main
from longspan.loading import load
from longspan.search import keep_server
from longspan.search.index import Index
from longspan.search.keep import identity
from unit.search.folders import filled, tiny
from unit.tasks.tiny import reader

QUERY = "the river Thames"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny().save(folder / "encoder")
    reader("longformer", "classify", labels=1, positions=512).save(folder / "ranker")
    reader("longformer", "classify", labels=3, positions=512).save(folder / "classifier")
    return folder


@pytest.fixture(autouse=True)
def _home(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    for model in models.iterdir():
        (tmp_path / model.name).symlink_to(model)
    filled(tmp_path / "docs", 3)


def told(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    found = main(list(arguments))
    printed = capsys.readouterr()
    assert found == status, printed.err
    return printed.out, printed.err


def test_documents_are_ranked_as_the_reader_ranks_them(capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(Path("docs").iterdir())
    ranked = load("ranker").rank(QUERY, [file.read_text() for file in files])
    assert ranked[0]["windows"] > 1
    data = json.loads(told(capsys, "rank", QUERY, "docs", "--model", "ranker", "--json")[0])
    assert data["query"] == QUERY
    assert data["failed"] == []
    assert [Path(one["file"]).name for one in data["results"]] == [
        files[one["corpus_id"]].name for one in ranked
    ]
    assert [one["score"] for one in data["results"]] == pytest.approx([one["score"] for one in ranked])
    out, _ = told(capsys, "rank", QUERY, "docs", "--model", "ranker", "--top", "1")
    (line,) = out.splitlines()
    assert line.startswith("1. ")
    assert f"{ranked[0]['n_tokens']} tokens, in {ranked[0]['windows']} windows" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["docs"], "`--model` is missing"),
        (["nowhere", "--model", "ranker"], "`FILE` must be a file or folder that exists"),
        (["docs", "--model", "encoder"], "`task` must be classify"),
        (["docs", "--model", "classifier"], "`labels` must be one or two to rank, but is 3"),
        (["docs", "--model", "./nowhere"], "`model` must be a folder that exists"),
    ],
)
def test_mistakes_are_told_first(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in told(capsys, "rank", QUERY, *arguments, status=2)[1]


def search(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    return told(capsys, "search", QUERY, "docs", "--model", "encoder", *arguments, status=status)


def test_a_search_is_ranked_again(capsys: pytest.CaptureFixture[str]) -> None:
    how = ("--mode", "bm25", "--top", "3")
    data = json.loads(search(capsys, *how, "--rerank", "ranker", "--json")[0])
    assert data["rerank"] == str(Path("ranker").absolute())
    scores = [hit["score"] for hit in data["results"]]
    assert scores == sorted(scores, reverse=True)
    expected = load("ranker").predict([(QUERY, hit["text"]) for hit in data["results"]])
    assert scores == pytest.approx(expected.tolist(), abs=1e-6)
    out, _ = search(capsys, *how, "--rerank", "ranker")
    assert f"(re-ranked {scores[0]:.3f}, words" in out
    best = json.loads(search(capsys, *how, "--json")[0])
    assert "rerank" not in best
    one = ("--mode", "bm25", "--top", "1", "--rerank-top", "1")
    few = json.loads(search(capsys, *one, "--rerank", "ranker", "--json")[0])
    assert few["results"][0]["text"] == best["results"][0]["text"]


REFUSED = {"encoder": "`task` must be classify", "classifier": "`labels` must be one or two"}


@pytest.mark.parametrize(("model", "words"), REFUSED.items())
def test_a_model_that_cannot_rank_is_refused_before_files_are_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: str, words: str
) -> None:
    monkeypatch.delattr(Index, "add")
    assert words in search(capsys, "--mode", "bm25", "--rerank", model, status=2)[1]
    assert "`model` must be a folder that exists" in search(capsys, "--rerank", "./nowhere", status=2)[1]
    assert "must be a whole number from 1" in search(capsys, "--rerank-top", "0", status=2)[1]


def test_a_warm_process_ranks_again_and_keeps_the_model(tmp_path: Path) -> None:
    with Index.open(tmp_path / "index", "encoder") as index:
        index.add(tmp_path / "docs", vectors=False, progress=False)
        own = identity(tmp_path / "index", "encoder")
        asked = {"queries": [QUERY], "mode": "bm25", "json": True, "rerank": str(tmp_path / "ranker")}
        first, second = (
            keep_server.respond(index, own, {"identity": own, "request": asked})["reply"]["out"]
            for _ in range(2)
        )
        assert first == second
        scores = [hit["score"] for hit in json.loads(first)["results"]]
        assert scores == sorted(scores, reverse=True)
        loaded = index._rerankers._loaded(tmp_path / "ranker")
        assert loaded is index._rerankers._loaded(str(tmp_path / "ranker"))
        refused = keep_server.respond(
            index, own, {"identity": own, "request": asked | {"rerank": str(tmp_path / "encoder")}}
        )
        assert "`task` must be" in refused["declined"]


def test_the_function_of_a_user_a_reader_and_its_folder_give_the_same(tmp_path: Path) -> None:
    ranker = load("ranker")
    with Index.open(tmp_path / "index", "encoder") as index:
        index.add(tmp_path / "docs", vectors=False, progress=False)
        orders = [
            [hit.text for hit in index.search(QUERY, 4, mode="bm25", rerank=rerank)]
            for rerank in (
                ranker,
                "ranker",
                Path("ranker"),
                lambda pairs: map(float, ranker.predict([*pairs])),
            )
        ]
        assert all(order == orders[0] for order in orders)
