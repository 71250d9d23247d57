"""What users give, checked and made lists: one or many texts, pairs, questions with contexts or choices."""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from longspan.errors import bad
from longspan.text.documents import read
from longspan.text.tokenizer import Input

LONGEST_PATH = 4096
log = logging.getLogger("longspan")


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
    text = read(given).text if isinstance(given, os.PathLike) else _string(name, given)
    if not text.strip():
        raise bad(name, "a text with something in it", text[:60])
    if text is given and len(text) < LONGEST_PATH and os.path.isfile(text):
        log.warning("%s is taken for a text, but %r is a file. Give a pathlib.Path to read it.", name, text)
    return text


def questions(question: object, context: object) -> Inputs:
    """(question, context) pairs, from two texts, two lists, one of each, or a list of dicts."""
    if context is None:
        return _dicts("question", question, ("question", "context"), _asked)
    if isinstance(question, str) and isinstance(context, str):
        return Inputs([_asked("", question, context)], ["context"], single=True)
    lists = [
        None if isinstance(given, str) else listed(name, given, "a text or a list of texts")
        for name, given in (("question", question), ("context", context))
    ]
    count = next(len(given) for given in lists if given is not None)
    asked, read = (
        [alone] * count if given is None else given
        for given, alone in zip(lists, (question, context), strict=True)
    )
    if len(asked) != len(read):
        raise bad("context", f"as many as the {len(asked)} questions", f"{len(read)} texts")
    pairs = [_asked(f"[{i}]", *pair) for i, pair in enumerate(zip(asked, read, strict=True))]
    return Inputs(pairs, [f"context[{i}]" for i in range(count)], single=False)


def prompts(prompt: object, choices: object) -> Inputs:
    """(prompt, list of choices), from a text and a list, two lists, or a list of dicts."""
    if choices is None:
        return _dicts("prompt", prompt, ("prompt", "choices"), _offered)
    if isinstance(prompt, str):
        return Inputs([_offered("", prompt, choices)], ["prompt"], single=True)
    asked = listed("prompt", prompt, "a text or a list of texts")
    offered = listed("choices", choices, "a list of lists")
    if len(asked) != len(offered):
        raise bad("choices", f"one list for each of the {len(asked)} prompts", f"{len(offered)} lists")
    items = [_offered(f"[{i}]", *both) for i, both in enumerate(zip(asked, offered, strict=True))]
    return Inputs(items, [f"prompt[{i}]" for i in range(len(items))], single=False)


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


def _dicts(name: str, given: object, keys: tuple[str, str], make: Any) -> Inputs:
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


def _asked(place: str, question: object, context: object) -> tuple[str, str]:
    for name, text in (("question", question), ("context", context)):
        if not _string(name + place, text).strip():
            raise bad(name + place, "a text with something in it", text)
    return str(question), str(context)


def _offered(place: str, prompt: object, choices: object) -> tuple[str, list[str]]:
    offered = listed("choices" + place, choices, "a list of texts")
    if not offered:
        raise bad("choices" + place, "a list of at least one text", offered)
    return _string("prompt" + place, prompt), [_string("choices" + place, choice) for choice in offered]


def _text(name: str, given: object, pairs: bool) -> Input:
    if not (pairs and isinstance(given, Mapping)):
        return _string(name, given)
    if "text" not in given or not set(given) <= {"text", "text_pair"}:
        raise bad(name, "a dict with 'text' and perhaps 'text_pair'", sorted(map(str, given)))
    text, pair = _string(name, given["text"]), given.get("text_pair")
    return text if pair is None else (text, _string(name, pair))


def _string(name: str, given: object) -> str:
    if not isinstance(given, str):
        raise bad(name, "a text (str)", given if given is None else type(given).__name__, _repair(given))
    return given


def _repair(given: object) -> str:
    if isinstance(given, (bytes, bytearray)):
        return "Decode the bytes first, as in data.decode('utf-8')."
    if given is None:
        return "Leave out what is missing, or use ''."
    return "" if isinstance(given, (Mapping, Sequence)) else "Turn it into a text with str()."
