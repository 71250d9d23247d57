"""SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018), and CUAD in this format: many answers, or none."""

from collections.abc import Iterator

from longspan.datasets.published.base import Format
from longspan.datasets.records import Record, get


def _rows(record: Record) -> Iterator[Record]:
    for i, paragraph in enumerate(get(record.values, "paragraphs", list, record.place)):
        place = record.place.at(f"paragraphs[{i}]")
        context = get(paragraph, "context", str, place)
        for j, asked in enumerate(get(paragraph, "qas", list, place)):
            inside = f"paragraphs[{i}].qas[{j}]"
            here = record.place.at(inside)
            values: dict[str, object] = {
                "question": get(asked, "question", str, here),
                "context": context,
                "answers": get(asked, "answers", list, here),
                "title": record.values.get("title"),
            }
            values |= {name: asked[name] for name in ("id", "is_impossible") if name in asked}
            yield record.child(values, inside)


SQUAD = Format("squad", frozenset({"paragraphs"}), _rows)
