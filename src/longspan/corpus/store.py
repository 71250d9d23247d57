"""A corpus on the disk: the tokens of documents end to end, mapped into memory and never read at once.

corpus.json               what it is, written last: without it, a corpus is not finished
plan.json                 what it is made from, written first
part-00000.safetensors    tokens, where each document ends, a hash of each document
tokenizer/                what made the tokens
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from longspan.errors import bad, number, refused, whole
from longspan.formats.atomic import replaced_file
from longspan.formats.files import inside, parse_json, read_json
from longspan.formats.safetensors import open_safetensors
from longspan.shapes import IntArray
from longspan.text.tokenizer import Tokenizer

VERSION = 1
MANIFEST, PLAN, TOKENIZER = "corpus.json", "plan.json", "tokenizer"
REPAIR = "Build the corpus again: longspan corpus --force."
STORED = {"uint16": torch.int16, "uint32": torch.int32}
"""How tokens are stored: safetensors' readers of old know no unsigned types, so these are their bits."""
PROBE = "The 3 naïve foxes' DNA: ACGTNacgtn, don't-care 1,234.5 €!\n\tdef f(x): return 你好\n"


class Part(NamedTuple):
    """Some documents, end to end."""

    tokens: IntArray
    ends: IntArray
    "(documents,): where each document ends among the tokens."
    hashes: IntArray
    "(documents,): 64 bits of a hash of each text."


@dataclass(frozen=True, eq=False)
class Corpus:
    """The documents of a folder that `build_corpus` has made."""

    folder: Path
    parts: tuple[Part, ...]
    fingerprint: str
    "That of the tokenizer."
    vocab_size: int
    characters: int
    "Of all texts."
    failed: tuple[str, ...] = ()
    "What could not be read."

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """The corpus in a folder; nothing of it is read yet."""
        home = Path(folder)
        if not (home / MANIFEST).is_file():
            unfinished = (home / PLAN).is_file()
            requirement = "a finished corpus" if unfinished else "the folder of a corpus"
            repair = "Run longspan corpus again: it goes on." if unfinished else "Make one: longspan corpus."
            raise bad("corpus", requirement, str(home), repair)
        found = read_json(inside(home, MANIFEST), 64 << 20)
        match found:
            case {
                "version": 1,
                "dtype": str(dtype),
                "parts": list(names),
                "tokenizer": str(fingerprint),
                "vocab_size": int(vocab_size),
                "characters": int(characters),
                "failed": list(failed),
            } if dtype in STORED and all(isinstance(name, str) for name in (*names, *failed)):
                parts = tuple(read_part(inside(home, name, ".safetensors"), dtype) for name in names)
                return cls(home, parts, fingerprint, vocab_size, characters, tuple(failed))
        raise refused(home / MANIFEST, "it does not describe a corpus of this version", REPAIR)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """What made the tokens."""
        return Tokenizer.from_folder(self.folder / TOKENIZER)

    @cached_property
    def lengths(self) -> IntArray:
        """(documents,): the tokens of each, special ones not counted."""
        return np.concatenate([np.diff(part.ends, prepend=0) for part in self.parts])

    @cached_property
    def hashes(self) -> IntArray:
        """(documents,): 64 bits of a hash of each text."""
        return np.concatenate([part.hashes for part in self.parts])

    @property
    def tokens(self) -> int:
        """Tokens of all documents."""
        return sum(part.tokens.size for part in self.parts)

    def __len__(self) -> int:
        return sum(len(part.ends) for part in self.parts)

    def document(self, index: int, begin: int = 0, end: int | None = None) -> IntArray:
        """Tokens of a document, from `begin` up to `end`."""
        own = int(np.searchsorted(self._counts, index, side="right"))
        part, place = self.parts[own], index - int(self._counts[own - 1] if own else 0)
        start = int(part.ends[place - 1]) if place else 0
        size = int(part.ends[place]) - start
        last = size if end is None else min(end, size)
        return part.tokens[start + begin : start + last].astype(np.int64)

    @cached_property
    def _counts(self) -> IntArray:
        return np.cumsum([len(part.ends) for part in self.parts])

    def split(self, dev: float = 0.05) -> tuple[IntArray, IntArray]:
        """The numbers of the documents to train on, and of those to evaluate on, about a share `dev`.

        The text of a document decides: equal texts are on one side, and adding others moves none. A few
        documents give one to evaluate on, a single one none.
        """
        number("dev", dev, 0.0, 1.0, below=True)
        hashes = self.hashes.view(np.uint64)
        held = hashes < np.uint64(int(dev * 2**64))
        if dev and not held.any():
            held = hashes == hashes.min(initial=np.uint64(2**64 - 1))
        if held.all():
            held[:] = False
        return np.flatnonzero(~held), np.flatnonzero(held)

    def check(self, tokenizer: Tokenizer) -> None:
        """Raise if another tokenizer made the tokens."""
        if fingerprint(tokenizer) != self.fingerprint:
            repair = f"Use the one in {self.folder / TOKENIZER}, or build the corpus with the model's."
            raise bad("tokenizer", f"the one that made {self.folder}", repr(tokenizer), repair)

    def __repr__(self) -> str:
        return f"Corpus({str(self.folder)!r}, {len(self):,} documents, {self.tokens:,} tokens)"


def fingerprint(tokenizer: Tokenizer) -> str:
    """What two tokenizers share that make the same tokens: their words, and what becomes of a sample."""
    words = [[name, tokenizer.id_of(name)] for name in tokenizer.names.values()]
    vocabulary = tokenizer.tokens(range(tokenizer.vocab_size))
    sample = tokenizer.encode(PROBE).ids.tolist()
    return hashlib.sha256(json.dumps([words, vocabulary, sample]).encode()).hexdigest()


def dtype_of(vocab_size: int) -> str:
    """The smallest type that holds all ids."""
    return "uint16" if whole("vocab_size", vocab_size, 1, most=2**31) <= 2**16 else "uint32"


def text_hash(text: str) -> int:
    """64 bits of a hash of a text, signed as numpy stores them."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def part_name(index: int) -> str:
    """The file of a part."""
    return f"part-{index:05}.safetensors"


def write_part(
    path: Path, tokens: Sequence[IntArray], hashes: Sequence[int], dtype: str, notes: Mapping[str, Any]
) -> None:
    """Write the documents of a part, whole or not at all; `notes` are kept beside them."""
    ends = np.cumsum([len(one) for one in tokens], dtype=np.int64)
    whole_part = np.concatenate([*tokens, np.zeros(0, np.int64)]).astype(dtype)
    columns = {
        "tokens": torch.from_numpy(whole_part.view(dtype.removeprefix("u"))),
        "ends": torch.from_numpy(ends),
        "hashes": torch.tensor(list(hashes), dtype=torch.int64),
    }
    with replaced_file(path) as temporary:
        save_file(columns, temporary, metadata={"notes": json.dumps(notes)})


def read_notes(path: Path) -> dict[str, Any]:
    """What was noted beside a part."""
    open_safetensors(path)  # which checks it
    with safe_open(path, framework="pt") as file:
        notes = (file.metadata() or {}).get("notes")
    if notes is None:
        raise refused(path, "it is no part of a corpus", REPAIR)
    return parse_json(notes.encode(), path)


def read_part(path: Path, dtype: str) -> Part:
    """The documents of a part, mapped."""
    file = open_safetensors(path)
    kinds = {name: kind for name, (_, kind) in file.shapes.items()}
    if kinds != {"tokens": STORED[dtype], "ends": torch.int64, "hashes": torch.int64}:
        raise refused(path, "it is no part of a corpus", REPAIR)
    columns = {name: file.read(name).numpy() for name in kinds}
    ends, tokens = columns["ends"], columns["tokens"].view(dtype)
    last = int(ends[-1]) if len(ends) else 0
    wrong = ends.shape != columns["hashes"].shape or last != tokens.size or tokens.ndim != 1
    if wrong or np.any(np.diff(ends, prepend=0) < 1):
        raise refused(path, "its documents do not cover its tokens", REPAIR)
    return Part(tokens, ends, columns["hashes"])
