"""What users give, checked and made lists: one or many texts, pairs, or files."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

from longspan.errors import bad
from longspan.text.documents import read
from longspan.text.tokenizer import Input

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


def texts(name: str, given: object, *, pairs: bool = False) -> Inputs:
    """Texts; with `pairs` also {"text": ..., "text_pair": ...}.

    >>> texts("texts", ["a", "b"]).names
    ['texts[0]', 'texts[1]']
    """
    if isinstance(given, str) or (pairs and isinstance(given, Mapping)):
        return Inputs([_text(name, given, pairs)], [name], single=True)
    items = listed(name, given, "a text or a list of texts")
    names = [f"{name}[{i}]" for i in range(len(items))]
    return Inputs([_text(n, item, pairs) for n, item in zip(names, items, strict=True)], names, single=False)


def documents(name: str, given: object) -> Inputs:
    """Whole documents: texts, and files by their paths.

    >>> documents("texts", "All's well that ends well.").names
    ['texts']
    """
    single = isinstance(given, str | os.PathLike)
    items = [given] if single else listed(name, given, "a text, a pathlib.Path or a list of them")
    names = [name] if single else [f"{name}[{i}]" for i in range(len(items))]
    names = [
        os.fspath(item) if isinstance(item, os.PathLike) else called
        for item, called in zip(items, names, strict=True)
    ]
    texts = [_document(called, item) for called, item in zip(names, items, strict=True)]
    return Inputs(texts, names, bool(single))


def _document(name: str, given: object) -> str:
    """The text, or what stands in the file; a text is never taken for a path, though it may look like one."""
    text = read(given).text if isinstance(given, os.PathLike) else string(name, given)
    if not text.strip():
        raise bad(name, "a text with something in it", text[:60])
    if text is given and len(text) < LONGEST_PATH and os.path.isfile(text):
        log.warning("%s is taken for a text, but %r is a file. Give a pathlib.Path to read it.", name, text)
    return text


def listed(name: str, given: object, wanted: str) -> list[Any]:
    """An iterable as a list; nothing that only looks like one."""
    if isinstance(given, (str, bytes, bytearray, Mapping)) or not isinstance(given, Iterable):
        raise bad(name, wanted, given if given is None else type(given).__name__, _repair(given))
    return list(given)


def prompts_by_name(given: object) -> dict[str, str]:
    """What is put before texts, by name."""
    found = {} if given is None else given
    if not isinstance(found, Mapping) or not all(
        isinstance(part, str) for item in found.items() for part in item
    ):
        raise bad("prompts", "texts by name", given)
    return dict(found)


def dicts(
    name: str, given: object, keys: tuple[str, str], make: Callable[[str, object, object], object]
) -> Inputs:
    """Pairs that were given as dicts."""
    single = isinstance(given, Mapping)
    wanted = f"a dict with {keys[0]!r} and {keys[1]!r}, or a list of such dicts"
    if isinstance(given, str):
        raise bad(keys[1], "given with the " + keys[0], None)
    items = [given] if single else listed(name, given, wanted)
    for item in items:
        if not isinstance(item, Mapping) or not set(keys) <= set(item):
            raise bad(name, wanted, sorted(item) if isinstance(item, Mapping) else type(item).__name__)
    places = [""] if single else [f"[{i}]" for i in range(len(items))]
    pairs = [make(place, item[keys[0]], item[keys[1]]) for place, item in zip(places, items, strict=True)]
    return Inputs(pairs, [f"{keys[0]}{place}" for place in places], single)


def _text(name: str, given: object, pairs: bool) -> Input:
    if not (pairs and isinstance(given, Mapping)):
        return string(name, given)
    if "text" not in given or not set(given) <= {"text", "text_pair"}:
        raise bad(name, "a dict with 'text' and perhaps 'text_pair'", sorted(map(str, given)))
    text, pair = string(name, given["text"]), given.get("text_pair")
    return text if pair is None else (text, string(name, pair))


def string(name: str, given: object) -> str:
    if not isinstance(given, str):
        raise bad(name, "a text (str)", given if given is None else type(given).__name__, _repair(given))
    return given


def _repair(given: object) -> str:
    if isinstance(given, (bytes, bytearray)):
        return "Decode the bytes first, as in data.decode('utf-8')."
    if given is None:
        return "Leave out what is missing, or use ''."
    return "" if isinstance(given, (Mapping, Sequence)) else "Turn it into a text with str()."
