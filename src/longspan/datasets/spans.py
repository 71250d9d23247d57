"""Where words stand in a text: answers, evidence and entities as spans of characters."""

import re
from collections.abc import Iterable, Mapping, Sequence

from longspan.datasets.records import Place, get, shown, wrong
from longspan.errors import InputError

Span = tuple[int, int]
Entity = tuple[int, int, str]
SPAN = "a pair of whole numbers, a start and an end"
ANSWERS = "a list of [start, end], texts, or objects with text and answer_start"


class Unmatched(InputError):
    """An answer that does not stand in its text."""


def answers(value: object, text: str, place: Place) -> list[Span]:
    """The spans of answers as files give them: SQuAD's object, spans, texts with or without their starts.

    >>> from pathlib import Path
    >>> answers({"text": ["Rome"], "answer_start": [3]}, "In Rome.", Place(Path("a.json"), 1))
    [(3, 7)]
    >>> answers(["rome"], "In Rome. To\\nRome.", Place(Path("a.json"), 1))
    [(3, 7), (12, 16)]
    """
    if isinstance(value, Mapping) and "text" in value:
        starts = value.get("answer_start")
        if isinstance(value["text"], str):
            return _one(value, text, place)
        texts = get(value, "text", list, place)
        if starts is None:
            return answers(texts, text, place)
        if not isinstance(starts, list) or len(starts) != len(texts):
            raise wrong(place, "answer_start", f"one number for each of the {len(texts)} texts", starts)
        value = [{"text": one, "answer_start": start} for one, start in zip(texts, starts, strict=True)]
    if isinstance(value, str):
        value = [value] if value else []
    if not isinstance(value, list):
        raise wrong(place, "answers", ANSWERS, value)
    if value and all(isinstance(one, str) for one in value):
        return _any(value, text, place)
    return sorted({span for one in value for span in _one(one, text, place)})


def _any(alternatives: Sequence[str], text: str, place: Place) -> list[Span]:
    """The places of words for one thing: some of them may stand nowhere, but not all."""
    found, nowhere = set[Span](), list[Unmatched]()
    for words in alternatives:
        try:
            found.update(everywhere(words, text, place))
        except Unmatched as error:
            nowhere.append(error)
    if not found:
        raise nowhere[0]
    return sorted(found)


def _one(value: object, text: str, place: Place) -> list[Span]:
    """The place of one answer; the first one of words without a start."""
    if isinstance(value, Mapping):
        words = get(value, "text", str, place)
        start = value.get("answer_start", value.get("start"))
        if start is None and words and (begin := text.find(words)) >= 0:
            return [(begin, begin + len(words))]
        return everywhere(words, text, place)[:1] if start is None else [_checked(words, start, text, place)]
    return [span(value, text, place, "answers")]


def _checked(words: str, start: object, text: str, place: Place) -> Span:
    """The span of words that should begin at `start`."""
    if isinstance(start, bool) or not isinstance(start, int):
        raise wrong(place, "answer_start", "a whole number", start)
    there = text[max(start, 0) : max(start, 0) + max(len(words), 1)]
    if not words or start < 0 or there != words:
        elsewhere = text.find(words) if words else -1
        repair = f" It stands at {elsewhere}." if elsewhere >= 0 else ""
        what = f"the answer {shown(words)!r} should begin at character {start}"
        raise Unmatched(f"{place}: {what}, but there stands {shown(there)!r}.{repair}")
    return start, start + len(words)


def everywhere(words: str, text: str, place: Place) -> list[Span]:
    """Wherever words stand as whole words; white space and case do not matter."""
    parts = words.split()
    if not parts:
        raise wrong(place, "answers", "texts with something in them", words)
    inner = r"\s+".join(map(re.escape, parts))
    ends = (r"(?<!\w)" if parts[0][0].isalnum() else "", r"(?!\w)" if parts[-1][-1].isalnum() else "")
    found = [match.span() for match in re.finditer(inner.join(ends), text, re.IGNORECASE)]
    if not found:
        repair = "Say what stands there, or leave such examples out with unmatched='drop'."
        raise Unmatched(f"{place}: the answer {shown(words)!r} does not stand in the text. {repair}")
    return found


def span(value: object, text: str, place: Place, name: str) -> Span:
    """A pair of numbers that lies in a text and is not empty."""
    numbers = list(value) if isinstance(value, list | tuple) else []
    if len(numbers) != 2 or not all(type(number) is int for number in numbers):
        raise wrong(place, name, SPAN, value)
    start, end = numbers
    if not 0 <= start < end <= len(text):
        raise wrong(place, name, f"spans in the {len(text):,} characters of the text", value)
    return start, end


def entities(value: object, text: str, place: Place) -> list[Entity]:
    """Named spans: [start, end, name], or objects with start, end and entity (or label)."""
    if not isinstance(value, list):
        raise wrong(place, "entities", "a list of [start, end, name]", value)
    found = []
    for one in value:
        numbers: object = one
        name: object = None
        if isinstance(one, Mapping):
            numbers = [one.get("start"), one.get("end")]
            name = one.get("entity", one.get("label", one.get("entity_group")))
            said = one.get("word", one.get("text"))
            start, end = span(numbers, text, place, "entities")
            if isinstance(said, str) and said != text[start:end]:
                what = f"the entity {shown(said)!r} should stand at {start} to {end}"
                raise Unmatched(f"{place}: {what}, but there stands {shown(text[start:end])!r}.")
        elif isinstance(one, list | tuple) and len(one) == 3:
            numbers, name = one[:2], one[2]
        if not isinstance(name, str) or not name:
            raise wrong(place, "entities", "a list of [start, end, name]", one)
        found.append((*span(numbers, text, place, "entities"), name))
    return found


def tagged(tokens: Sequence[str], tags: Sequence[str], place: Place) -> tuple[str, list[Entity]]:
    """Tokens as a text, one space between two, and their tags (B-, I-, E-, S- or without) as entities.

    >>> from pathlib import Path
    >>> tagged(["In", "New", "York"], ["O", "B-LOC", "I-LOC"], Place(Path("a"), 1))
    ('In New York', [(3, 11, 'LOC')])
    """
    if len(tokens) != len(tags):
        raise wrong(place, "tags", f"one for each of the {len(tokens)} tokens", f"{len(tags)} tags")
    found: list[Entity] = []
    start, last = 0, "O"
    for token, tag in zip(tokens, tags, strict=True):
        prefix, dash, name = tag.partition("-")
        if dash and prefix not in "BIES":
            raise wrong(place, "tags", "O, or a name after B-, I-, E- or S-", tag)
        goes_on = dash and prefix in "IE" and last[:2] in ("B-", "I-") and last[2:] == name
        if goes_on:
            found[-1] = (found[-1][0], start + len(token), name)
        elif tag != "O":
            found.append((start, start + len(token), name if dash else tag))
        start, last = start + len(token) + 1, tag
    return " ".join(tokens), found


def spans(value: object, text: str, place: Place, name: str) -> list[Span]:
    """A list of pairs of numbers."""
    if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
        raise wrong(place, name, "a list of [start, end]", value)
    return [span(one, text, place, name) for one in value]
