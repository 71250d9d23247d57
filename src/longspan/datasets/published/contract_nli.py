"""ContractNLI (Koreeda and Manning 2021): contracts, and hypotheses with the spans that decide them."""

from collections.abc import Iterator, Mapping

from longspan.datasets.published.base import Format
from longspan.datasets.records import Record, get, wrong


def _rows(record: Record) -> Iterator[Record]:
    place = record.place
    text, offered = get(record.values, "text", str, place), get(record.values, "spans", list, place)
    hypotheses: Mapping[str, object] = get(record.beside, "labels", dict, place)
    for i, annotated in enumerate(get(record.values, "annotation_sets", list, place)):
        for name, said in get(annotated, "annotations", dict, place).items():
            inside = f"annotation_sets[{i}].{name}"
            here = record.place.at(inside)
            numbers = get(said, "spans", list, here)
            if not all(type(number) is int and 0 <= number < len(offered) for number in numbers):
                raise wrong(here, "spans", f"numbers of the {len(offered)} spans of the document", numbers)
            hypothesis = get(hypotheses, name, dict, here)
            values = {
                "id": f"{record.values.get('id')}-{name}" + (f"-{i}" if i else ""),
                "premise": text,
                "hypothesis": get(hypothesis, "hypothesis", str, here),
                "label": get(said, "choice", str, here),
                "evidence": [offered[number] for number in numbers],
                "sentences": offered,
                "file": record.values.get("file_name"),
            }
            yield record.child(values, inside)


CONTRACT_NLI = Format("contract-nli", frozenset({"text", "spans", "annotation_sets"}), _rows)
