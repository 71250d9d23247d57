"""SQuALITY (Wang et al. 2022): stories, questions, and several summaries that answer each."""

from collections.abc import Iterator

from longspan.datasets.published.base import Format
from longspan.datasets.records import Record, get


def _rows(record: Record) -> Iterator[Record]:
    story = get(record.values, "document", str, record.place)
    about = record.values.get("metadata")
    passage = about.get("passage_id") if isinstance(about, dict) else None
    for number, asked in enumerate(get(record.values, "questions", list, record.place)):
        inside = f"questions[{number}]"
        here = record.place.at(inside)
        responses = get(asked, "responses", list, here)
        values: dict[str, object] = {
            "query": get(asked, "question_text", str, here),
            "document": story,
            "summary": [get(response, "response_text", str, here) for response in responses],
            "file": passage,
        }
        yield record.child(values, inside)


SQUALITY = Format("squality", frozenset({"document", "questions"}), _rows)
