"""Comparing a whole index with its checksums: whatever a search may show or go by."""

import hashlib
import os
from collections.abc import Iterator

import numpy as np

from longspan.search.database import meta_crc
from longspan.search.faults import damaged, sound
from longspan.search.flat import made
from longspan.search.large import verify_progress
from longspan.search.records import checksum, names_of, passages_crc, texts_of, vectors_checksum
from longspan.search.store import Store
from longspan.search.words import postings, unpack
from longspan.shapes import IntArray

GROUP = 1 << 22
"""Characters whose words are counted at once."""


def verify(store: Store) -> None:
    """Compare everything with its checksums; damage is an error."""
    with store.db.snapshot(), sound(store.folder):
        if store.db.rows("PRAGMA integrity_check") != [("ok",)]:
            raise damaged(store.folder, "its database fails SQLite's integrity check")
        if store.db.get("crc") != meta_crc(store.db.meta()):
            raise damaged(store.folder, "what it says about itself has changed")
        _verify_files(store)
        _verify_places(store)
        _verify_documents(store)
        verify_progress(store)
        _verify_words(store)


def _verify_files(store: Store) -> None:
    """What is known of files, and the words of their names."""
    files = store.files()
    if [file.crc for file in files] != [
        crc for (crc,) in store.db.rows("SELECT crc FROM files ORDER BY path")
    ]:
        raise damaged(store.folder, "what it knows of a file has changed")
    if {file.document for file in files} != {entry.id for entry in store.entries()}:
        raise damaged(store.folder, "a file has no document, or a document no file")
    names = {*store.db.rows("SELECT path, term FROM names LEFT JOIN files ON files.id = names.file")}
    if names != {(os.fsencode(file.path), term) for file, terms in names_of(files) for term in terms}:
        raise damaged(store.folder, "its table of names is not whole")


def _verify_places(store: Store) -> None:
    """Each document has rows of its own, and all passages belong to documents."""
    entries = store.entries()
    behind = 0
    for entry in entries:
        if entry.slot < behind:
            raise damaged(store.folder, "two documents stand in the same place")
        behind = entry.slot + entry.passages + 1
    if behind > store.db.number("rows"):
        raise damaged(store.folder, "a document stands where there is no place")
    if store.db.rows("SELECT count(*) FROM passages") != [(sum(entry.passages for entry in entries),)]:
        raise damaged(store.folder, "there are passages without a document")


def _verify_documents(store: Store) -> None:
    """The texts of documents, and what the model made of them."""
    for entry in store.entries():
        whole = checksum(entry, passages_crc(store.each_passage(entry))) == entry.crc
        if entry.is_read:
            whole &= vectors_checksum(entry, made(store, entry)) == entry.vectors_crc
            whole &= bool(entry.tokens) or not entry.token_slot
        else:
            nothing = (entry.truncated, entry.windows, entry.token_slot, entry.token_ends, entry.vectors_crc)
            whole &= nothing == (0, 0, 0, b"", 0) and entry.n_tokens == (None if entry.passages else 0)
        if not whole:
            raise damaged(store.folder, f"what it holds of {entry.title or entry.digest.hex()} has changed")


def _verify_words(store: Store) -> None:
    """Where each word occurs and how often, counted again from the texts."""
    expected, found = np.zeros((2, store.db.number("rows")), np.uint64)
    alive = np.zeros(len(expected), bool)
    for texts, rows in _grouped(store):
        alive[rows] = True
        packed, _ = postings(texts)
        for stem, data in packed.items():
            _count(expected, stem, *unpack([(0, data)]), rows)
    for stem, (places, counts) in store.all_postings():
        _count(found, stem, places, counts)
    if (expected != found)[alive].any():
        raise damaged(store.folder, "its table of words is not whole")


def _count(
    sums: "np.ndarray[tuple[int], np.dtype[np.uint64]]",
    stem: str,
    places: IntArray,
    counts: IntArray,
    rows: IntArray | None = None,
) -> None:
    """Add a stem's own number, times how often it occurs, to each row where it does."""
    mark = np.frombuffer(
        hashlib.blake2b(stem.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "<u8"
    )
    with np.errstate(over="ignore"):
        np.add.at(sums, places if rows is None else rows[places], (mark | 1) * counts.astype(np.uint64))


def _grouped(store: Store) -> Iterator[tuple[list[str], IntArray]]:
    """The words of rows, and their numbers, in groups of about GROUP characters."""
    texts: list[str] = []
    numbers: list[int] = []
    size = 0
    for entry in store.entries():
        for number, text in zip(entry.rows.tolist(), texts_of(entry, store.each_passage(entry)), strict=True):
            texts.append(text)
            numbers.append(number)
            size += len(text)
            if size >= GROUP:
                yield texts, np.array(numbers)
                texts, numbers, size = [], [], 0
    if texts:
        yield texts, np.array(numbers)
