"""Natural Questions with gold passages, as in Liu et al. 2023 ("Lost in the middle")."""

from collections.abc import Iterator

from longspan.datasets.published.base import Format
from longspan.datasets.records import Record, get, wrong


def _rows(record: Record) -> Iterator[Record]:
    """The context is all passages of the record, each under its title."""
    place, passages = record.place, get(record.values, "ctxs", list, record.place)
    if not passages:
        raise wrong(place, "ctxs", "a list of at least one passage", passages)
    texts = [f"{get(one, 'title', str, place)}\n{get(one, 'text', str, place)}" for one in passages]
    values = {
        "question": get(record.values, "question", str, place),
        "context": "\n\n".join(texts),
        "answers": get(record.values, "answers", list, place),
    }
    yield record.child(values)


NQ = Format("nq", frozenset({"question", "answers", "ctxs"}), _rows)
