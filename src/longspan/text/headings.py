"""The headings of plain text, by their shape: numbered clauses, chapters, lines in capitals.

Precision comes before recall: a passage under a wrong heading is worse than one under none. Every rule looks
at a bounded number of characters around the beginning of a line or sentence: the time is linear in the text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from longspan.text.files.parsed import LONGEST_HEADING, Heading, as_heading
from longspan.text.lines import (
    blank_after,
    blank_before,
    has_longer_line,
    is_phrase,
    line_at,
    may_begin,
    stands_alone,
)
from longspan.text.titles import is_firm, is_listing, is_shouted, is_title, run_in

LONG_LINE = 400
"""Characters above which a line is a whole paragraph, or many."""
MOST_REPEATS = 3
"""A line without a number that comes again is a running head; if more often than this, a form or a stamp."""
BARE_RUN = 5
"""So many headings with nothing between them are a table of contents, or a list."""
MOST_MATCHES = 200_000
"""What has more lines that may be headings is no text for readers; the rest of it is not searched."""

_NUMBER = r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,5}"
_COUNTED = "one|two|three|four|five|six|seven|eight|nine|ten"
_WHICH = rf"(?:{_NUMBER}|[IVXLC]{{1,8}}|[A-Z](?:-\d{{1,2}})?|(?i:{_COUNTED}))"
_RANKS = (
    dict.fromkeys(("part", "book", "volume"), 10)
    | dict.fromkeys(("chapter", "article", "appendix", "exhibit", "schedule", "annex", "attachment"), 20)
    | dict.fromkeys(("act", "stave", "canto"), 20)
    | dict.fromkeys(("section", "scene"), 30)
)
_WORDS = "|".join(form for word in _RANKS for form in (word.capitalize(), word.upper()))
_ROMAN, _PLAIN = 25, 30
# The first character is a line break, for which the engine scans fast.
_LINE = re.compile(
    r"\n[ \t\f]{0,60}+(?P<all>"
    rf"(?P<word>{_WORDS})[ \t]{{1,3}}(?P<which>{_WHICH})(?![\w)])"
    rf"|(?P<number>{_NUMBER})(?P<dot>[.)]?)[ \t]{{1,8}}(?=[\"“A-Z])"
    r"|(?P<roman>[IVX]{1,6})\.[ \t]{1,8}(?=[A-Z])"
    r"|(?P<capitals>[A-Z0-9])(?=[^a-z\n]{3,100}(?:\n|\Z))"
    r"|(?<=\n)(?P<left>[A-Z])(?=[^\n]{2,70}\n\r?\n[ \t]{2,8}\S)"
    r")"
)
_BELOW = re.compile(r"(?:[ \t\r]{0,40}\n){1,3}[ \t]{0,60}")
_AGAIN = re.compile(rf"\b(?:{_WORDS}) (?:\d|[A-Z]\b|[IVX]{{1,6}}\b)")
_IN_SENTENCES = (
    re.compile(r" (?P<number>[0-9]{1,3}(?:\.[0-9]{1,3}){0,5})(?P<dot>[.)]?) {1,4}(?=[A-Z])"),
    re.compile(r"ARTICLE {1,3}(?P<number>[IVX]{1,6})(?P<dot>\.?) {1,4}(?=[A-Z])"),
)
_BEFORE = re.compile(r"(?:[.;:)\"”A-Z]| ) {1,9}(?P<word>(?:ARTICLE|Article|SECTION|Section) {1,3})?\Z")


class _Candidate(NamedTuple):
    start: int
    end: int
    rank: int
    "What stands under a heading has a larger rank; ranks become levels at the end."
    text: str
    "Nothing for a number without a title, which only shows that numbers are counted here."
    number: tuple[int, ...] = ()
    whole: bool = True
    "Whether it has a line of its own."


def headings(text: str) -> tuple[Heading, ...]:
    """The headings that a reader of plain text would recognize.

    >>> text = "1. Fees\\n\\nSee 2.\\n\\n1.1 Late Fees. They are due.\\n\\n2. Term\\n"
    >>> [heading.text for heading in headings(text)]
    ['1. Fees', '1.1 Late Fees', '2. Term']
    """
    shifted = "\n" + text  # so that every line begins after a line break
    candidates = list(_in_lines(shifted))
    if has_longer_line(text, LONG_LINE):
        starts = {candidate.start for candidate in candidates}
        candidates += [found for found in _in_sentences(shifted) if found.start not in starts]
    kept = _without_lists(shifted, _in_sequence(sorted(candidates)))
    levels = {rank: level for level, rank in enumerate(sorted({found.rank for found in kept}), 1)}
    return tuple(Heading(found.start - 1, levels[found.rank], found.text) for found in kept)


def _in_lines(text: str) -> Iterator[_Candidate]:
    """Headings that begin a line."""
    indented = cache(lambda: text.count("\n   ") > 0.35 * text.count("\n"))
    loose: list[_Candidate] = []
    done = sections = 0
    for match in islice(_LINE.finditer(text), MOST_MATCHES):
        start = match.start("all")
        if start < done:
            continue
        _, word, which, digits, dot, roman, capitals, left = match.groups()
        if capitals:
            candidate = _shouted(text, start)
        elif left:
            candidate = _at_the_margin(text, start) if indented() else None
        elif word:
            candidate = _named(text, start, match.end(), word, which)
        elif roman:
            candidate = _numbered(text, start, match.end(), (_roman(roman),), _ROMAN)
        else:
            number = tuple(map(int, digits.split(".")))
            candidate = _numbered(text, start, match.end(), number, _rank(number))
            margin = text[start - 1] == "\n"
            sections += margin and len(number) == 1 and bool(candidate and candidate.text and candidate.whole)
            if not margin and len(number) == 1 and sections > 1 and indented():
                candidate = None  # a list inside of a section
            elif (
                not dot
                and len(number) == 1
                and not (candidate and stands_alone(text, candidate.start, candidate.end))
            ):
                candidate = None  # a quantity or a row of a table
        if candidate:
            done = candidate.end
            if capitals or left:
                loose.append(candidate)
            else:
                yield candidate
    repeats = Counter(candidate.text for candidate in loose)
    first = {candidate.text: candidate for candidate in reversed(loose)}
    yield from (candidate for text, candidate in first.items() if repeats[text] <= MOST_REPEATS)


def _in_sentences(text: str) -> Iterator[_Candidate]:
    """Headings inside of long lines: what follows a sentence, begins with a number and is a title."""
    for match in islice(_IN_SENTENCES[0].finditer(text), MOST_MATCHES):
        start, after = match.start("number"), match.end()
        before = _BEFORE.search(text, max(0, start - 24), start)
        if before is None or not _inside_a_long_line(text, start):
            continue
        start = before.start("word") if before["word"] else start
        number = tuple(map(int, match["number"].split(".")))
        if len(number) > 1 or match["dot"] or before["word"]:
            end = after + len(run_in(text[after : after + LONGEST_HEADING]))
            title = as_heading(text[start:end]) if end > after else ""
            yield _Candidate(start, end, _rank(number), title, number, whole=False)
    for match in islice(_IN_SENTENCES[1].finditer(text), MOST_MATCHES):
        start, after = match.span()
        title = run_in(text[after : after + LONGEST_HEADING])
        if title and _inside_a_long_line(text, start):
            end = after + len(title)
            yield _Candidate(start, end, _RANKS["article"], as_heading(text[start:end]))


def _inside_a_long_line(text: str, place: int) -> bool:
    half = LONG_LINE // 2
    return text.find("\n", max(0, place - half), place) < 0 or text.find("\n", place, place + half) < 0


def _numbered(text: str, start: int, after: int, number: tuple[int, ...], rank: int) -> _Candidate | None:
    """A heading that begins with a number; without a title, the number alone."""
    line, ended = line_at(text, after)
    if is_listing(line[:LONGEST_HEADING]):
        return None
    if not may_begin(text, start):
        return _Candidate(start, after, rank, "", number)
    title = ""
    if ended and len(line) <= LONGEST_HEADING:
        bare = line.rstrip(" .:")
        alone = blank_after(text, after + len(line))
        phrase = alone and text[start - 1] == "\n" and blank_before(text, start) and is_phrase(line)
        runs = line.rstrip().endswith(".") and run_in(line) not in ("", bare)
        if not runs and (phrase or is_shouted(bare) or (is_title(bare) and (alone or len(line) < 50))):
            title = line
    whole = bool(title)
    title = title or run_in(line)
    end = after + len(title)
    return _Candidate(start, end, rank, title and as_heading(text[start:end].rstrip(" .:")), number, whole)


def _named(text: str, start: int, after: int, word: str, which: str) -> _Candidate | None:
    """A heading such as `CHAPTER IV`, with its title on the same line or below."""
    if not blank_before(text, start) or (word.lower() == "exhibit" and "." in which):
        return None  # "Exhibit 10.31" is the label of a filing
    number = tuple(map(int, which.split("."))) if which[0].isdigit() else ()
    rank = _RANKS[word.lower()] + 10 * (len(number) > 1)
    line, ended = line_at(text, after)
    tail = line.strip(" \t.:-–—")
    if is_listing(line[:LONGEST_HEADING].lstrip()) or (ended and _AGAIN.search(line)):
        return None
    if ended and not tail:
        end = _title_below(text, after + len(line))
    elif ended and len(line) <= LONGEST_HEADING and (is_shouted(tail) or is_title(tail)):
        end = after + len(line)
    else:
        lead = len(line) - len(line.lstrip(" \t.:-–—"))
        title = run_in(line[lead:])
        end = after + lead + len(title) if title else 0
    return _Candidate(start, end, rank, as_heading(text[start:end].rstrip(" .:")), number) if end else None


def _title_below(text: str, end: int) -> int:
    """Where the title ends that stands in a paragraph of its own below; else `end`."""
    below = _BELOW.match(text, end)
    if below:
        line, whole = line_at(text, below.end())
        if whole and len(line) <= 80 and blank_after(text, below.end() + len(line)) and line:
            inside = line.rstrip(" .")
            if is_shouted(inside) or (is_title(inside) and not line.rstrip().endswith((".", ",", ";", ":"))):
                return below.end() + len(line)
    return end


def _shouted(text: str, start: int) -> _Candidate | None:
    """One to three lines in capitals between blank lines."""
    if not blank_before(text, start):
        return None
    end = start
    lines: list[str] = []
    while len(lines) < 4:
        line, whole = line_at(text, end)
        if not line.strip():
            break
        if not whole:
            return None
        lines.append(line.strip())
        end += len(line) + 1 + (text[end + len(line) : end + len(line) + 1] == "\r")
    joined = " ".join(lines)
    if len(lines) > 3 or not is_shouted(joined) or is_listing(joined) or is_firm(joined):
        return None
    if joined.endswith((",", ";", "!", "?", "-")) or joined.startswith(("BY ", "END OF ", "THE END")):
        return None
    if not joined.strip("IVXLC. ") or any(mark in joined for mark in "=<>{}|"):
        return None
    return _Candidate(start, end - 1, _PLAIN, as_heading(joined.rstrip(" .:")))


def _at_the_margin(text: str, start: int) -> _Candidate | None:
    """A title at the left margin of a text whose paragraphs are indented."""
    line, _ = line_at(text, start)
    title = line.strip()
    if not blank_before(text, start) or "  " in title or not is_title(title) or title[-1] in ".,;:!?":
        return None
    return _Candidate(start, start + len(title), _PLAIN, as_heading(title))


def _in_sequence(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """The titles whose numbers are counted: one that begins a count, or follows another number."""
    seen: set[tuple[int, ...]] = set()
    kept: list[_Candidate] = []
    latest, balance = 0, 0
    for candidate in candidates:
        number = candidate.number
        *parent, last = number or (1,)
        before = ((*parent, last - step) for step in (1, 2, 3))
        counted = last <= 1 or tuple(parent) in seen or any(each in seen for each in before)
        if len(number) == 1:
            balance += 1 if candidate.whole else -1
            # Where sections have lines of their own, numbers that begin paragraphs again are a list.
            counted = counted and (candidate.whole or balance < 0 or last > latest)
            latest = max(last, latest) if counted else latest
        if candidate.text and counted:
            kept.append(candidate)
        if number:
            seen.add(number)
    return kept


def _without_lists(text: str, candidates: list[_Candidate]) -> list[_Candidate]:
    """Leave out runs of headings with nothing between them but the numbers of pages."""
    kept: list[_Candidate] = []
    run: list[_Candidate] = []
    for candidate in candidates:
        gap = text[run[-1].end : candidate.start] if run else ""
        if len(gap) > 99 or gap.strip(" \t\r\n.:0123456789ivx"):
            kept += run if len(run) < BARE_RUN else []
            run = []
        run.append(candidate)
    return kept + (run if len(run) < BARE_RUN else [])


def _rank(number: tuple[int, ...]) -> int:
    """`1.0` is on a level with `1`."""
    return _PLAIN + 10 * (len(number) - 1 - (len(number) == 2 and number[1] == 0))


def _roman(numeral: str) -> int:
    values = [{"I": 1, "V": 5, "X": 10}[letter] for letter in numeral]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))
