"""Papers of SciSummNet and their human summaries as tokens, in three parts that share no paper."""

import hashlib
import re
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

PAD, START, END = range(3)
"""Tokens of their own: nothing, the beginning of a document or text, the end of a text."""
PARTS = ("train", "validation", "test")
_BODY = re.compile(r"/([^/]+)/Reference_XML/[^/]+\.xml$")
_SUMMARY = re.compile(r"/([^/]+)/summary/[^/]+\.scisummnet_human\.txt$")


class Paper(NamedTuple):
    """A paper, sentence by sentence (the title is the first), and what a reader wrote about it."""

    name: str
    sentences: list[str]
    summary: str


class Pair(NamedTuple):
    """A paper's tokens, and its summary's, which end with `END`."""

    document: list[int]
    summary: list[int]


def papers(archive: Path) -> dict[str, list[Paper]]:
    """The papers of the archive that have a human summary, by part: eight tenths, one and one.

    A paper's part depends on its title alone, so that two printings of a paper stand in one part.
    """
    bodies: dict[str, str] = {}
    summaries: dict[str, str] = {}
    with tarfile.open(archive) as files:
        for entry in files:
            for found, pattern in ((bodies, _BODY), (summaries, _SUMMARY)):
                if (match := pattern.search("/" + entry.name)) and (file := files.extractfile(entry)):
                    found[match[1]] = file.read().decode(errors="replace")
    parts: dict[str, list[Paper]] = {part: [] for part in PARTS}
    for name in sorted(bodies.keys() & summaries.keys()):
        root = ElementTree.fromstring(bodies[name])
        sentences = [" ".join((s.text or "").split()) for s in root.iter("S")]
        sentences = [sentence for sentence in sentences if sentence]
        title = re.sub(r"\W+", "", sentences[0].lower())
        tenth = int(hashlib.sha256(title.encode()).hexdigest(), 16) % 10
        summary = " ".join(summaries[name].split())
        parts[PARTS[max(0, tenth - 7)]].append(Paper(name, sentences, summary))
    return parts


def tokenizer(texts: Iterable[str], size: int) -> Tokenizer:
    """Byte pairs of these texts: `size` words."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    found.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<pad>", "<s>", "</s>"]
    found.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        ),
    )
    return found


def pair(paper: Paper, words: Tokenizer, longest: int, written: int) -> Pair:
    """A paper's first `longest` tokens and its summary's first `written`."""
    document = words.encode(" ".join(paper.sentences)).ids
    return Pair([START, *document[: longest - 1]], [*words.encode(paper.summary).ids, END][:written])
