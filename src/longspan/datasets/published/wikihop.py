"""WikiHop (Welbl et al. 2018): a query over several documents, and candidates of which one answers it."""

from collections.abc import Iterator

from longspan.datasets.published.base import Format
from longspan.datasets.records import Record, get


def _rows(record: Record) -> Iterator[Record]:
    place, values = record.place, record.values
    supports = get(values, "supports", list, place)
    yield record.child(
        {
            "id": values.get("id"),
            "question": get(values, "query", str, place).replace("_", " "),
            "context": "\n\n".join(map(str, supports)),
            "choices": get(values, "candidates", list, place),
            "label": get(values, "answer", str, place),
            "supports": supports,
        }
    )


WIKIHOP = Format("wikihop", frozenset({"query", "supports", "candidates"}), _rows)
