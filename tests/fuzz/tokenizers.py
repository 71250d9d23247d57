"""Tokenizer files of every family, damaged."""

import copy
import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.harness import campaign
from fuzz.mutations import mutated, mutated_json
from longspan.text.tokenizer import Tokenizer
from unit.text import tiny

KINDS = (*tiny.FAMILIES, "pegasus")
TEXTS = (
    "",
    " ",
    "the cat sat",
    "The\u0301 CAT\0\n<s></s>[SEP]<mask>",
    "\ufeffé\u202e\U0001f469\u200d\U0001f680",
    "a" * 5000,
)
WORDS = (b"\n", b'"', b"##", b"\xe2\x96\x81", b"\xff", b"\0", b" ", b"{", b"</s>")


@cache
def good() -> tuple[dict[str, bytes], ...]:
    """The files of good folders: vocabularies, and the same as tokenizer.json."""
    folders = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as place:
            folder = tiny.write(kind, Path(place))
            folders.append(_files(folder))
            saved = Path(place, "saved")
            saved.mkdir()
            Tokenizer.from_folder(folder).save(saved)
            folders.append(_files(saved))
    return tuple(folders)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@cache
def _parsed(data: bytes) -> Any:
    return json.loads(data)


def make(draw: random.Random, folder: Path) -> None:
    """A folder of which one or two files are damaged."""
    files = dict(draw.choice(good()))
    for name in draw.sample(sorted(files), draw.choice((1, 1, 2)) if len(files) > 1 else 1):
        if name.endswith(".json") and draw.random() < 0.8:
            files[name] = json.dumps(mutated_json(copy.deepcopy(_parsed(files[name])), draw)).encode()
        else:
            files[name] = mutated(files[name], draw, WORDS)
    if draw.random() < 0.3:
        extra = {
            "cls_token": "[CLS]",
            "model_max_length": 512,
            "added_tokens_decoder": {},
            "do_lower_case": True,
        }
        files["tokenizer_config.json"] = json.dumps(mutated_json(extra, draw)).encode()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def run(folder: Path) -> None:
    """Whatever a tokenizer makes of a text has offsets into it, and is the same next time."""
    tokenizer = Tokenizer.from_folder(folder)
    for text in TEXTS:
        encoding = tokenizer.encode(text)
        starts, ends = encoding.offsets[:, 0], encoding.offsets[:, 1]
        assert ((starts >= 0) & (starts <= ends) & (ends <= len(text))).all()
        assert (tokenizer.encode(text).ids == encoding.ids).all()
        tokenizer.decode(encoding.ids.tolist())


def fuzz(seconds: float, seed: int) -> int:
    """How many folders were tried; FuzzError if one failed."""
    return campaign("fuzz.tokenizers", seconds, seed)
