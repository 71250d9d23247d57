"""Tokenizer files that would hang, fill the memory or lead elsewhere: each is refused, or served in time."""

import json
import os
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from longspan.errors import CheckpointError, InputError, LongspanError
from longspan.text.guard import MOST_ADDED, MOST_UNIGRAM
from longspan.text.tokenizer import Tokenizer
from unit.text import tiny


def backend() -> Backend:
    made = Backend(models.WordPiece({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


def changed(change: Callable[[dict[str, Any]], None]) -> str:
    """A tokenizer.json with a change."""
    value = json.loads(backend().to_str())
    change(value)
    return json.dumps(value)


def with_parts(**parts: Any) -> str:
    made = backend()
    for name, part in parts.items():
        setattr(made, name, part)
    return made.to_str()


def charsmap(content: bytes) -> dict[str, Any]:
    """A sentencepiece charsmap with one string to replace characters by."""
    data = (1024).to_bytes(4, "little") + bytes(1024) + content + b"\0"
    return {"type": "Precompiled", "precompiled_charsmap": b64encode(data).decode()}


@pytest.mark.parametrize(("family", "many"), [("bert", 100_000), ("roberta", 10_000), ("bigbird", 10_000)])
def test_a_hundred_thousand_added_tokens_are_loaded_within_seconds(
    family: str, many: int, tmp_path: Path
) -> None:
    names = [f"<x{i}>" for i in range(many)]
    tiny.write(family, tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"additional_special_tokens": names}))
    started = time.thread_time()
    read = Tokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text(read.to_json())
    again = Tokenizer.from_folder(tmp_path)
    assert time.thread_time() - started < 3e-4 * many  # one by one 10,000 take a minute, 100,000 an hour
    last = read.id_of(names[-1])
    assert last is not None
    assert again.id_of(names[-1]) == last >= many


def test_ten_thousand_pieces_of_the_user_are_loaded_within_seconds(tmp_path: Path) -> None:
    pieces = [*tiny.bigbird_pieces(), *(tiny.piece(f"<u{i}>", kind=4) for i in range(10_000))]
    (tmp_path / "spiece.model").write_bytes(tiny.sentencepiece(pieces))
    started = time.thread_time()
    assert Tokenizer.from_folder(tmp_path).id_of("<u9999>") is not None
    assert time.thread_time() - started < 5


def test_tokens_are_added_as_one_by_one_and_no_further_than_the_model_reaches(tmp_path: Path) -> None:
    tiny.write("bert", tmp_path)
    size = len((tmp_path / "vocab.txt").read_text().split())
    extras = ["<x>", "the", "<y>", "<x>", "<z>"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"additional_special_tokens": extras}))
    read = Tokenizer.from_folder(tmp_path, vocab_size=size + 2)
    assert [read.id_of(name) for name in ("<x>", "<y>", "<z>")] == [size, size + 1, None]


HOSTILE = {
    "added tokens of two million characters": lambda: changed(
        lambda value: value.update(
            added_tokens=[
                {"id": 4 + i, "content": chr(0x4E00 + i) * (MOST_ADDED // 1000)}
                | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
                | {"special": True}
                for i in range(1001)
            ]
        )
    ),
    "a unigram vocabulary that fills the memory": lambda: json.dumps(
        json.loads(backend().to_str())
        | {
            "model": {
                "type": "Unigram",
                "unk_id": 0,
                "vocab": [[f"{i:05}" * (MOST_UNIGRAM // 4000), 0.0] for i in range(1001)],
            }
        }
    ),
    "a word of any length": lambda: changed(
        lambda value: value["model"].update(max_input_chars_per_word=10**9)
    ),
    "forty doublings": lambda: with_parts(
        normalizer=normalizers.Sequence([normalizers.Replace("a", "aa") for _ in range(40)])
    ),
    "ten tenfold": lambda: with_parts(
        normalizer=normalizers.Sequence([normalizers.Replace(Regex("."), "aaaaaaaaaa") for _ in range(10)])
    ),
    "text between all characters": lambda: with_parts(normalizer=normalizers.Replace("", "a" * 2000)),
    "bytes of bytes of bytes": lambda: with_parts(
        normalizer=normalizers.Sequence([normalizers.ByteLevel() for _ in range(12)])
    ),
    "a thousand steps": lambda: with_parts(
        normalizer=normalizers.Sequence([normalizers.Lowercase() for _ in range(1000)])
    ),
    "steps in steps": lambda: with_parts(
        normalizer=normalizers.Sequence(
            [normalizers.Sequence([normalizers.Replace("a", "aa")] * 10) for _ in range(4)]
        )
    ),
    "a thousand splits": lambda: with_parts(
        pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit() for _ in range(1000)])
    ),
    "a decoder that grows": lambda: with_parts(
        decoder=decoders.Sequence([decoders.Replace("a", "aaaa") for _ in range(20)])
    ),
    "a template that repeats the text": lambda: with_parts(
        post_processor=processors.TemplateProcessing(single=" ".join(["$A"] * 5000), pair="$A $B")
    ),
    "one character as a megabyte": lambda: changed(
        lambda value: value.update(normalizer=charsmap(b"a" * (1 << 20)))
    ),
    "a regex that explodes": lambda: with_parts(
        pre_tokenizer=pre_tokenizers.Split(Regex("(a+)+b"), "isolated")
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_tokenizer_that_would_hang_or_fill_the_memory_is_refused(what: str) -> None:
    text = HOSTILE[what]()
    started = time.thread_time()
    with pytest.raises(InputError):
        Tokenizer.from_json(text)
    assert time.thread_time() - started < 10


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "tokenizer_config.json", "added_tokens.json", "vocab.txt"]
)
def test_links_that_lead_out_of_the_folder_are_not_followed(name: str, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "model"
    outside.mkdir()
    tiny.write("bert", tiny_folder(folder))
    content = {"vocab.txt": (folder / "vocab.txt").read_text(), "tokenizer.json": backend().to_str()}
    (outside / name).write_text(content.get(name, "{}"))
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside / name)
    with pytest.raises(CheckpointError, match="outside its folder"):
        Tokenizer.from_folder(folder)


def tiny_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def test_links_of_the_hubs_cache_are_followed(tmp_path: Path) -> None:
    repository = tmp_path / "models--org--name"
    snapshot, blobs = tiny_folder(repository / "snapshots" / "0123"), tiny_folder(repository / "blobs")
    tiny.write("bert", blobs)
    (snapshot / "vocab.txt").symlink_to("../../blobs/vocab.txt")
    assert Tokenizer.from_folder(snapshot).encode("the cat").ids.size == 4


def test_a_module_folder_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    outside, folder = tiny_folder(tmp_path / "outside"), tiny_folder(tmp_path / "model")
    tiny.write("bert", outside)
    (folder / "0_Transformer").symlink_to(outside)
    (folder / "modules.json").write_text(json.dumps([{"path": "0_Transformer"}]))
    with pytest.raises(InputError, match="inside the model's own"):
        Tokenizer.from_folder(folder)


def test_a_pipe_in_place_of_a_tokenizer_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokenizer.json")
    with pytest.raises(LongspanError):
        Tokenizer.from_folder(tmp_path)
