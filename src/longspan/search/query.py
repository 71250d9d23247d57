"""A query as people type it: words, "exact phrases", -word, and file:, type:, before:, after:."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path

from longspan.errors import bad
from longspan.search.words import words_of

_PART = re.compile(
    r"""(?<!\S)(?P<not>-(?=["“\w]))?(?:
        ["“](?P<phrase>[^"“”]*)["”] |
        (?P<key>file|type|before|after):(?P<value>"[^"]*"|[^\s"]+) |
        (?P<word>\S+))""",
    re.VERBOSE,
)
_DATES = (("%Y-%m-%d", "day"), ("%Y-%m", "month"), ("%Y", "year"))


@dataclass(frozen=True)
class Query:
    """What a query asks, and which passages may answer it.

    >>> query = Query.parse('who pays "late fees" -interest file:lease*.pdf')
    >>> query.text, query.phrases, query.without, query.files
    ('who pays late fees', (('late', 'fees'),), (('interest',),), ('lease*.pdf',))
    """

    text: str
    "What is looked for: the words and phrases, without marks and filters."
    phrases: tuple[tuple[str, ...], ...] = ()
    "Words that must stand side by side."
    without: tuple[tuple[str, ...], ...] = ()
    "Words, or words side by side, that must not stand in the passage."
    files: tuple[str, ...] = ()
    "Patterns, one of which the name or the path of the file fits."
    types: tuple[str, ...] = ()
    "Kinds or suffixes of files."
    before: float | None = None
    after: float | None = None
    "When the file was last changed, in seconds since 1970: before, and not before."

    @classmethod
    def parse(cls, query: str) -> "Query":
        """Read a query; a filter that cannot be understood is an error."""
        words: list[str] = []
        lists: dict[str, list[tuple[str, ...]]] = {"phrases": [], "without": []}
        filters: dict[str, list[str]] = {"file": [], "type": [], "before": [], "after": []}
        for part in _PART.finditer(query):
            if part["key"] and not part["not"]:
                filters[part["key"]].append(part["value"].strip('"'))
                continue
            text = part["phrase"] if part["phrase"] is not None else (part["word"] or part[0].lstrip("-"))
            exact = tuple(words_of(text))
            if part["not"]:
                lists["without"] += [exact] if exact else []
            else:
                words.append(text)
                lists["phrases"] += [exact] if part["phrase"] is not None and exact else []
        asked = " ".join(" ".join(words).split())
        if not asked:
            raise bad("query", "some words to look for", query, "Filters and -words only narrow a search.")
        return cls(
            asked,
            tuple(lists["phrases"]),
            tuple(lists["without"]),
            tuple(filters["file"]),
            tuple(kind.lower().lstrip(".") for kind in filters["type"]),
            min((_date("before", value)[0] for value in filters["before"]), default=None),
            max((_date("after", value)[1] for value in filters["after"]), default=None),
        )

    @property
    def filtered(self) -> bool:
        """Whether only some files are searched."""
        return bool(self.files or self.types or self.before is not None or self.after is not None)

    def admits(self, path: Path, kind: str, mtime: int) -> bool:
        """Whether a file of this kind, changed at `mtime` nanoseconds, is searched."""
        seconds = mtime / 1e9
        return (
            (not self.files or any(fits(path, pattern) for pattern in self.files))
            and (not self.types or bool({kind, path.suffix.lower().lstrip(".")} & set(self.types)))
            and (self.before is None or seconds < self.before)
            and (self.after is None or seconds >= self.after)
        )


def fits(path: Path, pattern: str) -> bool:
    """Whether a file's name, or its path, fits a pattern with * and ?; a plain word fits a part of the name.

    >>> fits(Path("/a/Lease 2021.pdf"), "lease*.pdf"), fits(Path("/a/b.txt"), "*/a/*"), fits(Path("ab"), "b")
    (True, True, True)
    """
    folded, name, whole = pattern.casefold(), path.name.casefold(), path.as_posix().casefold()
    if not any(mark in folded for mark in "*?["):
        return folded in (whole if "/" in folded else name)
    return fnmatch(name, folded) or fnmatch(whole, folded)


def holds(words: list[str], phrase: tuple[str, ...]) -> bool:
    """Whether the words of a phrase stand side by side.

    >>> holds(["pay", "the", "late", "fees"], ("late", "fees"))
    True
    """
    size = len(phrase)
    return any(tuple(words[i : i + size]) == phrase for i in range(len(words) - size + 1))


def exactly(phrase: Sequence[str]) -> Callable[[str], bool]:
    """Whether a text holds the words of a phrase side by side, as a function of the text.

    >>> exactly(["late", "fees"])("Late-fees apply."), exactly(["late"])("Later.")
    (True, False)
    """
    wanted = tuple(phrase)
    inner = r"[\W_]+".join(map(re.escape, wanted))
    plain = re.compile(rf"(?<![^\W_]){inner}(?![^\W_])", re.ASCII | re.IGNORECASE)

    def search(text: str) -> bool:
        return bool(plain.search(text)) if text.isascii() else holds(words_of(text), wanted)

    return search


def _date(key: str, value: str) -> tuple[float, float]:
    """When a day, month or year begins and ends, local time, in seconds since 1970.

    `before:2024` is before it begins; `after:2024` after it ends.
    """
    for form, unit in _DATES:
        with suppress(ValueError, OverflowError):  # also of the years 1 and 9999
            begin = datetime.strptime(value, form)
            if unit == "day":
                end = begin + timedelta(days=1)
            elif unit == "month":
                end = (begin + timedelta(days=31)).replace(day=1)
            else:
                end = begin.replace(year=begin.year + 1)
            return begin.timestamp(), end.timestamp()
    raise bad(f"{key}:", "a day, a month or a year such as 2024-05-31, 2024-05 or 2024", value)
