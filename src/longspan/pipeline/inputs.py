"""What users give, checked and made lists: one or many texts, pairs, or files."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

from longspan.errors import bad
from longspan.text.documents import read
from longspan.text.encoding import Input

LONGEST_PATH = 4096
log = logging.getLogger("longspan")


PathLike = os.PathLike[str]


class TextPair(TypedDict):
    """A text and what is read beside it."""

    text: str
    text_pair: NotRequired[str | None]


class Inputs(NamedTuple):
    """What is to be read."""

    items: list[Any]
    names: list[str]
    "What each is called in errors."
    single: bool
    "One was given, not a list of one, and one result is wanted."


def texts(name: str, value: object, *, pairs: bool = False) -> Inputs:
    """Texts; with `pairs` also {"text": ..., "text_pair": ...}.

    >>> texts("texts", ["a", "b"]).names
    ['texts[0]', 'texts[1]']
    """
    if isinstance(value, str) or (pairs and isinstance(value, Mapping)):
        return Inputs([_text(name, value, pairs)], [name], single=True)
    items = listed(name, value, "a text or a list of texts")
    names = [f"{name}[{i}]" for i in range(len(items))]
    return Inputs([_text(n, item, pairs) for n, item in zip(names, items, strict=True)], names, single=False)


def documents(name: str, value: object) -> Inputs:
    """Whole documents: texts, and files by their paths.

    >>> documents("texts", "All's well that ends well.").names
    ['texts']
    """
    single = isinstance(value, str | os.PathLike)
    items = [value] if single else listed(name, value, "a text, a pathlib.Path or a list of them")
    names = [name] if single else [f"{name}[{i}]" for i in range(len(items))]
    names = [
        os.fspath(item) if isinstance(item, os.PathLike) else called
        for item, called in zip(items, names, strict=True)
    ]
    texts = [_document(called, item) for called, item in zip(names, items, strict=True)]
    return Inputs(texts, names, bool(single))


def _document(name: str, value: object) -> str:
    """The text, or what stands in the file; a text is never taken for a path, though it may look like one."""
    text = read(value).text if isinstance(value, os.PathLike) else string(name, value)
    if not text.strip():
        raise bad(name, "a text with something in it", text[:60])
    if text is value and len(text) < LONGEST_PATH and os.path.isfile(text):
        log.warning("%s is taken for a text, but %r is a file. Give a pathlib.Path to read it.", name, text)
    return text


def listed(name: str, value: object, requirement: str) -> list[Any]:
    """An iterable as a list; nothing that only looks like one."""
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        raise bad(name, requirement, value if value is None else type(value).__name__, _repair(value))
    return list(value)


def prompts_by_name(value: object) -> dict[str, str]:
    """What is put before texts, by name."""
    prompts = {} if value is None else value
    if isinstance(prompts, Mapping) and all(
        isinstance(part, str) for item in prompts.items() for part in item
    ):
        return dict(prompts)
    raise bad("prompts", "texts by name", value)


def dicts(
    name: str, value: object, keys: tuple[str, str], make: Callable[[str, object, object], object]
) -> Inputs:
    """Pairs that were given as dicts."""
    single = isinstance(value, Mapping)
    requirement = f"a dict with {keys[0]!r} and {keys[1]!r}, or a list of such dicts"
    if isinstance(value, str):
        raise bad(keys[1], "given with the " + keys[0], None)
    items = [value] if single else listed(name, value, requirement)
    for item in items:
        if not isinstance(item, Mapping) or not set(keys) <= set(item):
            raise bad(name, requirement, sorted(item) if isinstance(item, Mapping) else type(item).__name__)
    places = [""] if single else [f"[{i}]" for i in range(len(items))]
    pairs = [make(place, item[keys[0]], item[keys[1]]) for place, item in zip(places, items, strict=True)]
    return Inputs(pairs, [f"{keys[0]}{place}" for place in places], single)


def _text(name: str, value: object, pairs: bool) -> Input:
    if not (pairs and isinstance(value, Mapping)):
        return string(name, value)
    if "text" not in value or not set(value) <= {"text", "text_pair"}:
        raise bad(name, "a dict with 'text' and perhaps 'text_pair'", sorted(map(str, value)))
    text, pair = string(name, value["text"]), value.get("text_pair")
    return text if pair is None else (text, string(name, pair))


def string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise bad(name, "a text (str)", value if value is None else type(value).__name__, _repair(value))
    return value


def _repair(value: object) -> str:
    if isinstance(value, (bytes, bytearray)):
        return "Decode the bytes first, as in data.decode('utf-8')."
    if value is None:
        return "Leave out what is missing, or use ''."
    return "" if isinstance(value, (Mapping, Sequence)) else "Turn it into a text with str()."
