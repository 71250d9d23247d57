"""HotpotQA (Yang et al. 2018): a question over paragraphs, its answer and the sentences that support it."""

from collections.abc import Iterator

from longspan.datasets.published.base import Format
from longspan.datasets.records import Record, get, wrong

SPOKEN = ("yes", "no", "noanswer")
"""Answers that are not words of the text."""


def _rows(record: Record) -> Iterator[Record]:
    """The context is all paragraphs, each under its title; evidence are the spans of supporting sentences."""
    place, values = record.place, record.values
    context, sentences = "", dict[tuple[str, int], tuple[int, int]]()
    for paragraph in get(values, "context", list, place):
        match paragraph:
            case [str(title), list(texts)] if all(isinstance(text, str) for text in texts):
                context += f"{title}\n"
            case _:
                raise wrong(place, "context", "a list of [title, sentences]", paragraph)
        for number, text in enumerate(texts):
            sentences[title, number] = (len(context), len(context) + len(text))
            context += text
        context += "\n\n"
    evidence = []
    for fact in get(values, "supporting_facts", list, place):
        match fact:
            case [str(title), int(number)] if (title, number) in sentences:
                evidence.append(sentences[title, number])
            case [str(title), int(_)] if any(title == known for known, _ in sentences):
                pass  # some published facts count sentences that the paragraph does not have
            case _:
                raise wrong(place, "supporting_facts", "pairs of a title of the context and a number", fact)
    said = get(values, "answer", str, place)
    yield record.child(
        {
            "id": values.get("_id", values.get("id")),
            "question": get(values, "question", str, place),
            "context": context.rstrip("\n"),
            "answers": [] if said in SPOKEN else [said],
            "said": said,
            "evidence": evidence,
            "sentences": list(sentences.values()),
            "kind": values.get("type"),
        }
    )


HOTPOT = Format("hotpot", frozenset({"question", "answer", "context", "supporting_facts"}), _rows)
