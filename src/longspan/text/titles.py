"""What looks like a title: the capitals of its words, and how it ends."""

import re

from longspan.text.files.parsed import LONGEST_HEADING, as_title

# fmt: off
SMALL = frozenset((
    "a", "an", "and", "as", "at", "by", "de", "du", "for", "from", "her", "his", "in", "into", "is", "it",
    "its", "la", "le", "nor", "of", "on", "or", "over", "per", "the", "their", "to", "under", "upon", "via",
    "von", "vs", "with", "within", "without",
))
"""Words that small letters do not make less of a title."""
OF_SENTENCES = frozenset((
    "shall", "will", "means", "mean", "may", "must", "agrees", "agree", "has", "have", "had", "was", "were",
    "hereby", "which",
))
FIRMS = (
    "inc", "llc", "l.l.c", "ltd", "limited", "corp", "corporation", "company", "co", "lp", "l.p", "plc",
    "n.a", "s.a", "ag", "gmbh", "b.v", "n.v",
)
REFERENCES = ("SECTION", "SECTIONS", "ARTICLE", "ARTICLES", "EXHIBIT", "SCHEDULE", "PARAGRAPH", "OF", "TO")
# fmt: on
MOST_WORDS = 14
HEAD = 4000
"""Characters at the beginning of a text among which its title is sought."""
MOST_PARAGRAPHS = 6
_LEADERS = re.compile(r"\.\.\.|\. \. \.|…|___|\t")
"""What leads to a page number, or leaves room to write."""
_PAGE = re.compile(r"[ \t]{2}\d{1,4}\Z")
_NEXT = re.compile(r" \d{1,3} (?:Section|SECTION|Article|ARTICLE) [0-9IVX]")
_CAPITALS = re.compile(r"(?:[A-Z][A-Z'’&/,;-]{0,30}(?![\w.]) {1,2}){1,12}+(?=[0-9]{1,2}\.|[(\"“]|[A-Z][a-z])")
_UNTIL_STOP = re.compile(
    r"[^.:;\n\[\]]{3,90}?"
    r"(?=(?:[.:]| [-–—]{1,2})(?:\s{1,9}[A-Z\"“(\[0-9]|\s{0,9}\n|\Z)| {1,4}\([a-z0-9]{1,3}\) )"
)

_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
# These two begin with a character, for which the engine scans fast.
_DECLARED = re.compile(r"\n(?:Title: |The Project Gutenberg EBook of )([^\n]{2,200})")
_THIS = re.compile(r"T(?<=\bT)(?:HIS|his) ([A-Z][\w ,&'’/-]{5,90})")
_LABEL = re.compile(
    r"(?i:\d* ?exhibit|ex[ -]|contents|table of|confidential|draft|abstract|introduction|by |page |source:"
    r"|\W*execution|\W*portions|\[|\(|\d+\W*$)"
)
_CHAPTER = re.compile(r"(?i:chapter|book|part|volume|prologue|article|section|preface)\b")


def is_title(line: str) -> bool:
    """Whether most words of a line have capitals, as in a title.

    >>> is_title("Limitation of Liability"), is_title("The buyer pays within a month")
    (True, False)
    """
    words = line.lstrip("\"“‘'").split()
    if not 0 < len(words) <= MOST_WORDS or not words[0][0].isupper() or not OF_SENTENCES.isdisjoint(words):
        return False
    bare = [word.strip("\"'“”‘’()[],;:.") for word in words]
    weighty = [word for word in bare if word.lower() not in SMALL]
    letters = [word for word in weighty if word[:1].isalpha()]
    high = len([word for word in letters if not word[0].islower()])
    return bool(letters) and len(letters) >= 0.6 * len(weighty) and high >= 0.75 * len(letters)


def is_shouted(line: str) -> bool:
    """Whether a line is words in capitals, and not a table, a drawing or a code.

    >>> is_shouted("LIMITATION OF LIABILITY"), is_shouted("Limitation"), is_shouted("A   B   C D")
    (True, False, False)
    """
    if not line.isupper() or "   " in line or len(line) > LONGEST_HEADING:
        return False
    letters = sum(map(str.isalpha, line))
    words = line.split()
    return (
        letters >= 4
        and any(word.strip(".:,-") not in ("BETWEEN", "AMONG", "AND", "BY", "THE", "") for word in words)
        and letters >= 0.75 * (len(line) - len(words) + 1)
        and len(words) <= MOST_WORDS
        and max(map(len, words)) >= 4
    )


def is_firm(line: str) -> bool:
    """Whether a line is the name of a company, as above a signature.

    >>> is_firm("ACME WIDGETS, INC."), is_firm("THE COMPANY'S DUTIES")
    (True, False)
    """
    words = line.rstrip(" .,:)").lower().split()
    return bool(words) and words[-1].lstrip("(") in FIRMS


def is_listing(line: str) -> bool:
    """Whether a line is from a table of contents or a form: dots, tabs or a page number far to the right.

    >>> is_listing("1. Fees ........ 3"), is_listing("1. Fees    3"), is_listing("1. Fees")
    (True, True, False)
    """
    numbered = line[-1:].isdecimal() and _PAGE.search(line[-6:])
    return bool(numbered or _LEADERS.search(line) or _NEXT.search(line))


def run_in(line: str) -> str:
    """The title that begins a line before its sentences, or "".

    >>> run_in("Late Fees. The buyer shall pay"), run_in("DEFINITIONS The words"), run_in("The buyer pays.")
    ('Late Fees', 'DEFINITIONS', '')
    """
    if match := _CAPITALS.match(line):
        title = match[0].rstrip(" ,;-").removesuffix(" A").removesuffix(" I")
        if is_shouted(title) and title.rpartition(" ")[2] not in REFERENCES:
            return title
    match = _UNTIL_STOP.match(line)
    title = match[0].strip() if match else ""
    abbreviated = len(title.rpartition(" ")[2]) < 3  # Mr. and Dr., or an initial
    return title if not abbreviated and len(title.split()) <= 10 and is_title(title) else ""


def title_of(text: str) -> str | None:
    """The title that a plain text begins with, or None.

    >>> title_of("Exhibit 10.1\\n\\nSUPPLY AGREEMENT\\n\\nThis agreement is made between the parties below.")
    'SUPPLY AGREEMENT'
    """
    head = text[:HEAD]
    if match := _DECLARED.search("\n" + head):
        return as_title(match[1])
    paragraphs = _PARAGRAPH.findall(head)[:-1]  # something must stand under a title
    if "Request for Comments" in head:
        paragraphs = [each for each in paragraphs if each[:9].isspace()]
    for number, paragraph in enumerate(paragraphs[:MOST_PARAGRAPHS]):
        line = " ".join(paragraph.split())
        if _CHAPTER.match(line):
            return None
        if len(line) > LONGEST_HEADING or _LABEL.match(line):
            continue
        centered = paragraph[:9].isspace() and line[-1] not in ",;:.!?"
        if (centered and is_title(line)) or (is_shouted(line) and line[-1] != ":" and not is_firm(line)):
            return as_title(line)
        alone = number == 0 and "\n" not in paragraph.strip() and (line[0].isupper() or line[0].isdigit())
        if alone and 1 < len(line.split()) <= 16 and line[-1] not in ",;:.":
            return as_title(line)
    return _said_again(head)


def _said_again(head: str) -> str | None:
    """A title in capitals that the next sentence repeats: `SUPPLY AGREEMENT This Supply Agreement ...`."""
    for match in _THIS.finditer(head):
        before = head[: match.start()].rstrip()
        words = match[1].split()[:MOST_WORDS]
        for count in range(len(words), 1, -1):
            title = " ".join(words[:count]).upper()
            if before.endswith(title):
                return as_title(title)
    return None
