"""QuALITY (Pang et al. 2022): stories, and questions with four choices."""

from collections.abc import Iterator

from longspan.datasets.published.base import Format
from longspan.datasets.records import Record, get


def _rows(record: Record) -> Iterator[Record]:
    article = get(record.values, "article", str, record.place)
    for number, asked in enumerate(get(record.values, "questions", list, record.place)):
        inside = f"questions[{number}]"
        here = record.place.at(inside)
        values: dict[str, object] = {
            "question": get(asked, "question", str, here),
            "context": article,
            "choices": get(asked, "options", list, here),
            "label": get(asked, "gold_label", int, here) - 1,
            "difficult": asked.get("difficult"),
            "file": record.values.get("article_id"),
        }
        if "question_unique_id" in asked:
            values["id"] = asked["question_unique_id"]
        yield record.child(values, inside)


QUALITY = Format("quality", frozenset({"article", "questions"}), _rows)
