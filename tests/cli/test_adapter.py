"""`--adapter`: which of a model's adapters is merged; an index remembers it, and takes no other."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import longspan
from longspan.cli import main
from longspan.errors import InputError
from longspan.search import keep, keep_server
from longspan.search.index import Index
from longspan.search.library import place
from longspan.search.rebuild import known
from parity.test_jina_embeddings_v3 import ADAPTERS, authors
from unit.search.folders import filled, tiny, written
from unit.tasks.tiny import CORPUS, reader, tokenizer

QUERY, SEPARATION, TEXTS = ADAPTERS[0], ADAPTERS[2], {f"{i}.txt": text for i, text in enumerate(CORPUS)}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    authors(folder)
    tokenizer("longformer").save(folder, token_types=False)
    return folder


@pytest.fixture(autouse=True)
def _home(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model").symlink_to(model)
    written(tmp_path / "docs", TEXTS)


def told(capsys: pytest.CaptureFixture[str], *arguments: str, status: int | None = 0) -> tuple[str, str]:
    found = main(list(arguments))
    printed = capsys.readouterr()
    assert found == status if status is not None else found in (0, 1), printed.err
    return printed.out, printed.err


def test_vectors_are_those_of_the_adapter_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "encode", "docs", "--model", "model", "--adapter", QUERY, "--out", "x.npy")
    expected = longspan.load("model", task="encode", adapter=QUERY).encode(list(CORPUS))
    np.testing.assert_allclose(np.load("x.npy"), expected, atol=1e-6)
    _, err = told(capsys, "encode", "docs", "--model", "model", "--out", "x.npy", status=2)
    assert f"`adapter` must be one of {', '.join(ADAPTERS)}, none, but is None" in err


def test_a_re_ranker_without_adapters_takes_none(capsys: pytest.CaptureFixture[str]) -> None:
    reader("longformer", "classify", labels=1).save("ranker")
    _, err = told(capsys, "rank", "who?", "docs", "--model", "ranker", "--adapter", "x", status=2)
    assert "`adapter` must be None for Longformer, or the folder of an adapter, but is 'x'" in err


def test_an_index_remembers_its_adapter_and_takes_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", "--index", "./ix", "--model", "model", "--adapter", SEPARATION)
    expected = longspan.load("model", task="encode", adapter=SEPARATION, overflow="window")
    command = ("search", "the river", "--index", "./ix", "--json")
    first = json.loads(told(capsys, *command, status=None)[0])["results"]
    assert first
    for more in ((), ("--model", "model"), ("--adapter", SEPARATION)):  # by its stamp, too
        assert json.loads(told(capsys, *command, *more, status=None)[0])["results"] == first
    _, err = told(capsys, *command, "--adapter", QUERY, status=2)
    assert f"`adapter` must be {SEPARATION}, as the index was built, but is '{QUERY}'" in err
    assert (
        json.loads(told(capsys, "index", "--show", "--index", "./ix", "--json")[0])["adapter"] == SEPARATION
    )
    assert f"adapter {SEPARATION}" in told(capsys, "index", "--show", "--index", "./ix")[0]
    with Index.open("ix", expected) as index:
        index.search("the river")
    refused = pytest.raises(InputError, match="`model` must be the one that the index was built with")
    with Index.open("ix", longspan.load("model", task="encode", adapter=QUERY)) as index, refused:
        index.search("the river")


def test_a_rebuild_keeps_the_adapter_or_takes_another(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", "--index", "./ix", "--model", "model", "--adapter", SEPARATION)
    told(capsys, "index", "--index", "./ix", "--rebuild")
    assert known(Path("ix")).adapter == SEPARATION
    told(capsys, "index", "--index", "./ix", "--rebuild", "--adapter", QUERY)
    assert known(Path("ix")).adapter == QUERY
    tiny().save("other")
    told(capsys, "index", "--index", "./ix", "--rebuild", "--model", "other")
    assert known(Path("ix")).adapter is None


def test_each_adapter_has_a_default_index_and_a_warm_process_of_its_own(tmp_path: Path) -> None:
    places = {place(None, "model"), place(None, "model", QUERY), place(None, "model", SEPARATION)}
    assert len(places | {place(None, None), place(None, None, QUERY)}) == 5
    assert place("./ix", "model", QUERY) == place("./ix", "model")
    assert keep.identity(tmp_path, "model") != keep.identity(tmp_path, "model", QUERY)


def test_a_warm_process_is_told_the_adapter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[list[str]] = []

    def popen(command: list[str], **_: object) -> SimpleNamespace:
        given.append(command)
        return SimpleNamespace()

    monkeypatch.setattr(keep, "run_folder", lambda create=False: tmp_path)
    monkeypatch.setattr("subprocess.Popen", popen)
    keep.start(tmp_path / "ix", "model", 3, QUERY)
    assert given[0][-4:] == [str(tmp_path / "ix"), "model", "3", QUERY]
    opened: list[str | None] = []

    def open_index(folder: Path, name: str | None, adapter: str | None = None) -> Index:
        opened.append(adapter)
        raise InputError("enough")

    monkeypatch.setattr(Index, "open", open_index)
    with pytest.raises(InputError, match="enough"):
        keep_server.main(tmp_path / "ix", "model", 3, QUERY)
    assert opened == [QUERY]


def test_a_reader_brings_its_own_adapter(tmp_path: Path) -> None:
    filled(tmp_path / "more", 1)
    with pytest.raises(InputError, match="`adapter` must be None beside a Reader, but is 'x'"):
        Index.open(tmp_path / "ix", tiny(), adapter="x")
