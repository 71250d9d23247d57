"""The flat files of an index, a few megabytes at a time: what is mapped would stay in memory."""

from collections.abc import Iterator

from longspan.search.records import Entry
from longspan.search.store import Store

CHUNK = 1 << 22
"""Bytes that are read at once."""


def chunks(store: Store, name: str, width: int, first: int, count: int) -> Iterator[bytes]:
    """The bytes of some rows of a flat file."""
    path = store.path_of(store.db.number("generation"), name)
    if not width or not count or not path.is_file():
        return
    with open(path, "rb") as file:
        file.seek(first * width)
        left, most = count * width, max(1, CHUNK // width) * width
        while left and (data := file.read(min(left, most))):
            left -= len(data)
            yield data


def made(store: Store, entry: Entry) -> Iterator[bytes]:
    """What the model made of a document: its vectors, then its tokens."""
    yield from chunks(store, "vectors", 2 * store.size_of("width"), entry.slot, entry.passages + 1)
    yield from chunks(store, "tokens", store.size_of("token_bytes"), entry.token_slot, entry.tokens)
