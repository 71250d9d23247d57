"""Keeping an index in order: moving live rows together, and comparing everything with its checksums."""

import os
import zlib
from collections.abc import Sequence

import numpy as np

from longspan.search.database import NAME, POSTINGS, damaged
from longspan.search.records import Entry, checksum, numbers
from longspan.search.store import FILES, Store, names_of
from longspan.search.words import MAX_COUNT, pack
from longspan.shapes import IntArray

WASTE = 0.25
"""The share of rows that may be dead before the live ones move."""
PARTS = 128
"""How many parts postings may have before they are joined."""
PART = 1 << 24
"""Rows that one part of the postings can number."""


def compact(store: Store) -> None:
    """Move the live rows together if too many are dead, and delete files that nothing refers to."""
    with store.db.transaction():
        entries, rows, generation = store.entries(), store.db.number("rows"), store.db.number("generation")
        live = sum(entry.passages + 1 for entry in entries)
        if rows - live > WASTE * rows or store.db.number("parts") > PARTS:
            generation += 1
            _move(store, entries, rows, generation)
            store.db.put(rows=str(live), generation=str(generation), parts="1")
    store.tidy(generation)


def _move(store: Store, entries: Sequence[Entry], rows: int, generation: int) -> None:
    """Write the live rows to the files of a new generation."""
    tables = {"vectors": store.vectors(), "tokens": store.tokens()}
    place = np.full(rows, -1)
    slot = token_slot = 0
    pieces: dict[str, list[tuple[int, bytes]]] = {name: [] for name in FILES}
    for entry in entries:
        place[entry.rows] = slot + np.arange(entry.passages + 1)
        if entry.n_tokens is not None:
            own = slice(entry.slot, entry.slot + entry.passages + 1)
            pieces["vectors"].append((slot, tables["vectors"][own].tobytes()))
            tokens = tables["tokens"][entry.token_slot : entry.token_slot + entry.tokens]
            pieces["tokens"].append((token_slot, tokens.tobytes()))
        store.db.do("UPDATE documents SET slot = ?, token_slot = ? WHERE id = ?", slot, token_slot, entry.id)
        slot, token_slot = slot + entry.passages + 1, token_slot + entry.tokens
    _join(store, place)
    store.db.put(generation=str(generation), tokens=str(token_slot))
    for name, width in zip(FILES, (2 * store.size_of("width"), store.size_of("token_bytes")), strict=True):
        store.path_of(generation, name).unlink(missing_ok=True)
        store.write(name, width, pieces[name])


def _join(store: Store, place: IntArray) -> None:
    """Join the parts of the postings; `place` is the new row of each old one, -1 for the dead."""
    store.db.do("ALTER TABLE postings RENAME TO old_postings")
    store.db.do(POSTINGS)
    for stem, (old, counts) in store.all_postings("old_postings"):
        rows, counts = place[old], counts[place[old] >= 0]
        rows = rows[rows >= 0]
        for base in range(0, len(place), PART):
            own = rows // PART == base // PART
            if own.any():
                data = pack(rows[own] - base, counts[own])
                store.db.do("INSERT INTO postings VALUES (?, ?, ?)", stem, base, data)
    store.db.do("DROP TABLE old_postings")


def verify(store: Store) -> None:
    """Compare everything with its checksums; damage is an error."""
    if store.db.rows("PRAGMA integrity_check") != [("ok",)]:
        raise damaged(store.folder, f"{NAME} fails SQLite's integrity check")
    _verify_files(store)
    lengths = np.zeros(store.db.number("rows"), np.int64)
    vectors, tokens = store.vectors(), store.tokens()
    for entry in store.entries():
        rows = store.passages(entry)
        sound = checksum(entry, rows) == entry.crc
        if entry.n_tokens is not None:
            own = slice(entry.slot, entry.slot + entry.passages + 1)
            codes = tokens[entry.token_slot : entry.token_slot + entry.tokens]
            data = vectors[own].tobytes() + codes.tobytes() + entry.token_ends
            sound &= zlib.crc32(data) == entry.vectors_crc
        if not sound:
            raise damaged(store.folder, f"what it holds of {entry.title or entry.digest.hex()} has changed")
        lengths[entry.rows[1:]] = numbers(entry.lengths)
    sums = np.zeros_like(lengths)
    for _, (rows_, counts) in store.all_postings():
        sums[rows_] += counts
    live = lengths > 1
    if (sums < np.minimum(lengths, MAX_COUNT))[live].any() or (sums > lengths)[live].any():
        raise damaged(store.folder, "its table of words is not whole")


def _verify_files(store: Store) -> None:
    """The same of what is known of files, and of the words of their names."""
    files = store.files()
    if [file.crc for file in files] != [
        crc for (crc,) in store.db.rows("SELECT crc FROM files ORDER BY path")
    ]:
        raise damaged(store.folder, "what it knows of a file has changed")
    if {file.document for file in files} != {entry.id for entry in store.entries()}:
        raise damaged(store.folder, "a file has no document, or a document no file")
    names = {*store.db.rows("SELECT path, term FROM names JOIN files ON files.id = names.file")}
    if names != {(os.fsencode(file.path), term) for file, terms in names_of(files) for term in terms}:
        raise damaged(store.folder, "its table of names is not whole")
