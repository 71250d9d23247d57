"""QMSum (Zhong et al. 2021): meetings, and summaries that answer queries."""

from collections.abc import Iterator

from longspan.datasets.published.base import Format
from longspan.datasets.records import Place, Record, get, wrong


def _rows(record: Record) -> Iterator[Record]:
    """The document is the turns, a line each; evidence are the spans of those that a summary is of."""
    place, turns, text = record.place, list[tuple[int, int]](), ""
    for turn in get(record.values, "meeting_transcripts", list, place):
        line = f"{get(turn, 'speaker', str, place)}: {get(turn, 'content', str, place)}\n"
        turns.append((len(text), len(text) + len(line) - 1))
        text += line
    for key in ("general_query_list", "specific_query_list"):
        for number, asked in enumerate(get(record.values, key, list, place)):
            inside = f"{key}[{number}]"
            here = record.place.at(inside)
            said = asked.get("relevant_text_span", []) if isinstance(asked, dict) else []
            yield record.child(
                {
                    "query": get(asked, "query", str, here),
                    "document": text,
                    "summary": get(asked, "answer", str, here),
                    "evidence": [_evidence(pair, turns, here) for pair in said],
                    "file": place.file.name,
                },
                inside,
            )


def _evidence(pair: object, turns: list[tuple[int, int]], place: Place) -> tuple[int, int]:
    """The span of the turns from a first to a last one."""
    match pair:
        case [first, last] if str(first).isdecimal() and str(last).isdecimal():
            begin, end = int(str(first)), min(int(str(last)), len(turns) - 1)  # some count a turn too many
            if begin <= end:
                return turns[begin][0], turns[end][1]
    raise wrong(place, "relevant_text_span", f"pairs of numbers of the {len(turns)} turns", pair)


QMSUM = Format("qmsum", frozenset({"meeting_transcripts", "specific_query_list"}), _rows)
