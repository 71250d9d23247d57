"""Keeping an index small: live rows are moved together, and postings of many parts are joined."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from longspan.search.database import NEW_POSTINGS, POSTINGS
from longspan.search.faults import sound
from longspan.search.flat import chunks
from longspan.search.records import Entry
from longspan.search.store import FILES, Store
from longspan.search.words import pack
from longspan.shapes import IntArray

WASTE = 0.25
"""The share of rows that may be dead before the live ones move."""
PARTS = 128
"""How many parts postings may have before they are joined."""
PART = 1 << 24
"""Rows that one part of the postings can number."""
BATCH = 1 << 26
"""Bytes of postings that are joined in one transaction, which holds them in memory."""


def compact(store: Store) -> None:
    """Move the live rows together if too many are dead, join postings of too many parts, and tidy up.

    Readers see the old state until the last of several transactions puts the new one in its place.
    """
    try:
        with sound(store.folder):
            _compact(store)
    finally:
        store.tidy()


def _compact(store: Store) -> None:
    with store.db.snapshot():
        version, entries, rows = store.db.version, store.entries(), store.db.number("rows")
        generation = store.next_generation()
    dead = rows - sum(entry.passages + 1 for entry in entries)
    moved = list(_moved(entries)) if dead > WASTE * rows else None
    if moved is not None or store.db.number("parts") > PARTS:
        place = np.full(rows, -1)
        for old, new in zip(entries, entries if moved is None else moved, strict=True):
            place[old.rows] = new.rows
        if moved is not None:
            _copy(store, entries, moved, generation)
        _join(store, place)
        with store.db.transaction():
            if store.db.version == version:  # else another process wrote, without the lock
                _replace(store, moved, generation)


def _moved(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The same documents with their rows and tokens side by side."""
    slot = token_slot = 0
    for entry in entries:
        yield replace(entry, slot=slot, token_slot=token_slot if entry.tokens else 0)
        slot, token_slot = slot + entry.passages + 1, token_slot + entry.tokens


def _copy(store: Store, entries: Sequence[Entry], moved: Sequence[Entry], generation: int) -> None:
    """Copy vectors and tokens to the files of the next generation, one document at a time."""
    for name, key, size in zip(FILES, ("width", "token_bytes"), (2, 1), strict=True):
        width = size * store.size_of(key)
        path = store.path_of(generation, name)
        path.unlink(missing_ok=True)
        store.write(path, width, _rows(store, name, width, entries, moved))


def _rows(
    store: Store, name: str, width: int, entries: Sequence[Entry], moved: Sequence[Entry]
) -> Iterator[tuple[int, bytes]]:
    """The rows of a flat file, each with its new place, some megabytes at a time."""
    for old, new in zip(entries, moved, strict=True):
        if not old.is_read:
            continue
        first, behind, count = (
            (old.slot, new.slot, old.passages + 1)
            if name == "vectors"
            else (old.token_slot, new.token_slot, old.tokens)
        )
        for data in chunks(store, name, width, first, count):
            yield behind, data
            behind += len(data) // width


def _join(store: Store, place: IntArray) -> None:
    """Write all postings in one part; `place` is the new row of each old one, -1 for the dead."""
    with store.db.transaction(visible=False):
        store.db.do(f"DROP TABLE IF EXISTS {NEW_POSTINGS}")
        store.db.do(POSTINGS.replace("postings", NEW_POSTINGS, 1))
    last: str | None = ""
    while last is not None:
        with store.db.transaction(visible=False):
            last = _join_some(store, place, last)


def _join_some(store: Store, place: IntArray, after: str) -> str | None:
    """Join what one transaction should of the stems that follow; the last of them, None at the end."""
    size = 0
    for stem, (old, counts) in store.all_postings(after):
        rows, counts = place[old], counts[place[old] >= 0]
        rows = rows[rows >= 0]
        for base in range(0, len(place), PART):
            own = rows // PART == base // PART
            if own.any():
                data = pack(rows[own] - base, counts[own])
                store.db.do(f"INSERT INTO {NEW_POSTINGS} VALUES (?, ?, ?)", stem, base, data)
                size += len(data)
        if size >= BATCH:
            return stem
    return None


def _replace(store: Store, moved: Sequence[Entry] | None, generation: int) -> None:
    """Put the joined postings in the place of the old, and documents, unless None, where they moved."""
    store.db.do("DROP TABLE postings")
    store.db.do(f"ALTER TABLE {NEW_POSTINGS} RENAME TO postings")
    store.db.put(parts="1")
    if moved is not None:
        store.db.do("DELETE FROM unfinished")
        places = [(entry.slot, entry.token_slot, entry.id) for entry in moved]
        store.db.do_many("UPDATE documents SET slot = ?, token_slot = ? WHERE id = ?", places)
        store.db.put(
            rows=str(sum(entry.passages + 1 for entry in moved)),
            tokens=str(sum(entry.tokens for entry in moved)),
            generation=str(generation),
        )
