"""A corpus is built part by part, the same bits however often it is stopped."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from longspan.corpus import build
from longspan.corpus.build import build_corpus
from longspan.corpus.store import MANIFEST, PLAN, Corpus, dtype_of, fingerprint
from longspan.corpus.texts import Rules
from longspan.errors import CheckpointError, InputError, LongspanError
from longspan.formats.atomic import locked
from unit.corpus.small import corpus, text, tokenizer, written

KILLED = """
import os, signal, sys
from pathlib import Path
from longspan.corpus import build, store
from unit.corpus.small import tokenizer

left = int(sys.argv[3])
real = os.replace

def replace(source, target):
    global left
    if "part-" in str(target) or "corpus.json" in str(target):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)

words = tokenizer()
os.replace = replace
build.build_corpus([sys.argv[1]], sys.argv[2], words, part_tokens=100)
"""


def stored(folder: Path) -> dict[str, bytes]:
    """The files of a corpus."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_corpus_holds_the_tokens_of_its_documents(tmp_path: Path) -> None:
    found = corpus(tmp_path)
    assert len(found) == 12
    assert found.characters == sum(len(text(number)) for number in range(12))
    for number in range(12):
        ids = tokenizer().encode(text(number)).ids
        np.testing.assert_array_equal(found.document(number), ids[1:-1])
        np.testing.assert_array_equal(found.document(number, 3, 9), ids[4:10])
    assert found.tokens == found.lengths.sum()
    assert found.tokenizer.to_json() == tokenizer().to_json()


def test_a_build_that_is_killed_goes_on_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    data = written(tmp_path / "texts", 8)
    build_corpus([data], tmp_path / "whole", tokenizer(), part_tokens=100)
    wanted = stored(tmp_path / "whole")
    assert len(wanted) >= 6  # with four parts
    script, out = tmp_path / "killed.py", tmp_path / "killed"
    script.write_text(KILLED)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    for written_before in (0, 2, 1):
        command = [sys.executable, str(script), str(data), str(out), str(written_before)]
        assert subprocess.run(command, env=environment).returncode == -signal.SIGKILL
        with pytest.raises(InputError, match="must be a finished corpus"):
            Corpus.open(out)
    assert len(list(out.glob("part-*"))) == 3
    encoded: list[object] = []
    words = tokenizer()
    real = words.encode_many
    words.encode_many = lambda texts: encoded.extend(texts) or real(texts)  # type: ignore[func-returns-value, method-assign]
    try:
        build_corpus([data], out, words, part_tokens=100)
    finally:
        words.encode_many = real  # type: ignore[method-assign]
    assert 0 < len(encoded) < 8  # what stands in whole parts is not tokenized again
    assert stored(out) == wanted
    assert not list(out.glob(".*"))


def test_a_finished_corpus_is_only_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus(tmp_path)
    monkeypatch.setattr(build, "texts", None)
    assert len(corpus_again(tmp_path)) == 12


def corpus_again(folder: Path, **options: object) -> Corpus:
    return build_corpus([folder / "texts"], folder / "corpus", tokenizer(), **options)  # type: ignore[arg-type]


def test_other_data_rules_or_words_are_refused_unless_forced(tmp_path: Path) -> None:
    corpus(tmp_path)
    with pytest.raises(InputError, match="a corpus of the same rules"):
        corpus_again(tmp_path, rules=Rules(lines=True))
    with pytest.raises(InputError, match="a corpus of the same tokenizer"):
        build_corpus([tmp_path / "texts"], tmp_path / "corpus", tokenizer("wordpiece"))
    (tmp_path / "texts/new.txt").write_text("one more")
    with pytest.raises(InputError, match=r"a corpus of the same data.*--force"):
        corpus_again(tmp_path)
    assert len(corpus_again(tmp_path, force=True)) == 13


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path) -> None:
    data = written(tmp_path / "texts", 1)
    with pytest.raises(InputError, match="`out` must be a new or empty folder"):
        build_corpus([data], data, tokenizer(), force=True)
    assert [path.name for path in data.iterdir()] == ["000.txt"]


def test_one_process_at_a_time_fills_a_folder(tmp_path: Path) -> None:
    written(tmp_path / "texts")
    (tmp_path / "corpus").mkdir()
    with locked(tmp_path / "corpus", "is taken"), pytest.raises(LongspanError, match="is being filled by"):
        corpus_again(tmp_path)


def test_data_without_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    with pytest.raises(InputError, match="`data` must be files, or folders with files, that can be read"):
        corpus_again(tmp_path)
    (tmp_path / "texts/a.txt").write_text("")
    with pytest.raises(InputError, match=r"`data` must be files with text, but is '1 without any'"):
        corpus_again(tmp_path)
    (tmp_path / "texts/b.jsonl").write_text("{")
    with pytest.raises(InputError, match="line 1 is not JSON"):
        corpus_again(tmp_path, force=True)
    with pytest.raises(InputError, match="files and folders that exist"):
        build_corpus([tmp_path / "nowhere"], tmp_path / "corpus", tokenizer())


def test_a_file_that_cannot_be_read_is_told_and_left_out(tmp_path: Path) -> None:
    written(tmp_path / "texts", 3)
    (tmp_path / "texts/001.jsonl").write_text("{")
    found = corpus_again(tmp_path)
    assert len(found) == 3
    (reason,) = found.failed
    assert "001.jsonl" in reason


def test_documents_are_split_by_their_text_alone(tmp_path: Path) -> None:
    found = corpus(tmp_path / "a", 60, length=12)
    training, dev = found.split(0.3)
    assert 5 < dev.size < 35
    assert sorted([*training, *dev]) == list(range(60))
    more = written(tmp_path / "a/texts", 90, length=12)
    (more / "000-twin.txt").write_text(text(int(dev[0]), 12))
    larger = build_corpus([more], tmp_path / "b", tokenizer())
    held = {larger.document(number).tobytes() for number in larger.split(0.3)[1]}
    assert {found.document(number).tobytes() for number in dev} <= held
    assert not held & {larger.document(number).tobytes() for number in larger.split(0.3)[0]}


@pytest.mark.parametrize(("count", "held"), [(1, 0), (2, 1), (5, 1)])
def test_few_documents_give_one_to_evaluate_on_and_a_single_one_none(
    tmp_path: Path, count: int, held: int
) -> None:
    found = corpus(tmp_path, count)
    assert found.split(1e-9)[1].size == held
    assert found.split(0.0)[1].size == 0


def test_another_tokenizer_is_told_apart_by_its_words(tmp_path: Path) -> None:
    found = corpus(tmp_path)
    found.check(tokenizer())
    with pytest.raises(InputError, match=r"`tokenizer` must be the one that made .*corpus"):
        found.check(tokenizer("wordpiece"))
    assert len({fingerprint(tokenizer(kind)) for kind in ("bpe", "wordpiece", "dna")}) == 3


def test_what_is_no_corpus_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the folder of a corpus"):
        Corpus.open(tmp_path)
    home = corpus(tmp_path).folder
    part = home / "part-00000.safetensors"
    whole = part.read_bytes()
    part.write_bytes(whole[:-8])
    with pytest.raises(CheckpointError, match="cut off"):
        Corpus.open(home)
    part.write_bytes(whole)
    (home / MANIFEST).write_text((home / MANIFEST).read_text().replace('"uint16"', '"uint32"'))
    with pytest.raises(CheckpointError, match="it is no part of a corpus"):
        Corpus.open(home)
    (home / MANIFEST).write_text("{}")
    with pytest.raises(CheckpointError, match="it does not describe a corpus"):
        Corpus.open(home)
    (home / MANIFEST).unlink()
    with pytest.raises(InputError, match="a finished corpus"):
        Corpus.open(home)
    assert (home / PLAN).is_file()


def test_ids_are_stored_in_the_smallest_type() -> None:
    assert [dtype_of(size) for size in (1, 65_535, 65_536, 65_537)] == ["uint16"] * 3 + ["uint32"]


def test_a_large_vocabulary_is_stored_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "dtype_of", lambda size: "uint32")
    np.testing.assert_array_equal(corpus(tmp_path).document(3), tokenizer().encode(text(3)).ids[1:-1])
