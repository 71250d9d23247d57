"""JSON: lines of objects, a list of objects, or an object around such a list."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from longspan.datasets.files import content, lines
from longspan.datasets.records import NOTHING, Place, Record
from longspan.errors import unreadable
from longspan.formats.files import STRICT

LISTS = ("data", "documents")
"""What holds the records of a file that is an object."""
_SPACE = re.compile(r"[ \t\r\n]*")


def json_lines(path: Path) -> Iterator[Record]:
    """A record for each line that holds an object."""
    for number, line in lines(path):
        if line.strip():
            try:
                value = STRICT.decode(line)
            except (ValueError, RecursionError) as error:
                raise _broken(path, number, error) from None
            yield _record(value, Place(path, number))


def json_file(path: Path) -> Iterator[Record]:
    """The objects of a list, of a list in an object, or the object itself."""
    text = content(path)
    try:
        beside, found, end = _top(text, _skip(text, 0))
        if _skip(text, end) != len(text):
            raise ValueError("something stands behind its end")
    except IndexError:
        raise unreadable(path, "it was cut off", "Download or save it again.") from None
    except (ValueError, RecursionError) as error:
        raise _broken(path, getattr(error, "lineno", None), error) from None
    before, line = 0, 1
    for number, (offset, value) in enumerate(found):
        line += text.count("\n", before, offset)
        before = offset
        inside = f"[{number}]" if len(found) > 1 else ""
        yield _record(value, Place(path, line, inside))._replace(beside=beside)


def _top(text: str, at: int) -> tuple[Mapping[str, object], list[tuple[int, object]], int]:
    """What stands beside the records, the records with their offsets, and where all that ends."""
    if text[at] == "[":
        return NOTHING, *_items(text, at)
    if text[at] != "{":
        value, end = STRICT.raw_decode(text, at)
        return NOTHING, [(at, value)], end
    beside: dict[str, object] = {}
    found: list[tuple[int, object]] | None = None
    here = _skip(text, at + 1)
    while text[here] != "}":
        key, here = STRICT.raw_decode(text, here)
        here = _skip(text, here)
        if text[here] != ":" or not isinstance(key, str) or key in beside:
            raise ValueError(f"there is no key with a value of its own at character {here}")
        here = _skip(text, here + 1)
        if key in LISTS and text[here] == "[" and found is None:
            found, here = _items(text, here)
        else:
            beside[key], here = STRICT.raw_decode(text, here)
        here = _next(text, here, "}")
    return (beside, found, here + 1) if found is not None else (NOTHING, [(at, beside)], here + 1)


def _items(text: str, at: int) -> tuple[list[tuple[int, object]], int]:
    """The items of the list that begins here with their offsets, and where it ends."""
    found = []
    at = _skip(text, at + 1)
    while text[at] != "]":
        value, end = STRICT.raw_decode(text, at)
        found.append((at, value))
        at = _next(text, end, "]")
    return found, at + 1


def _next(text: str, at: int, close: str) -> int:
    """Where the next item begins, or what closes the list."""
    at = _skip(text, at)
    if text[at] == close:
        return at
    if text[at] != "," or text[_skip(text, at + 1)] == close:
        raise ValueError(f"there is no item behind a comma at character {at}")
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _record(value: object, place: Place) -> Record:
    if not isinstance(value, dict):
        raise unreadable(place.file, f"line {place.line} holds no object, but {str(value)[:40]!r}")
    return Record(value, place)


def _broken(path: Path, number: int | None, error: Exception) -> Exception:
    where = f"line {number}" if number else "it"
    why = "it nests too deep" if isinstance(error, RecursionError) else str(error)
    return unreadable(path, f"{where} is not JSON ({why})")
