"""FASTA: sequences of bases, in documents of bounded length."""

import re
from collections.abc import Iterable, Iterator

from longspan.errors import bad
from longspan.text.files.parsed import Refusal

SUFFIXES = (".fa", ".fasta", ".fna")
STRETCH = 50_000
"""Bases of a document; Zaheer et al. 2020 (appendix F) have 25,000 to 100,000."""
_LINE = re.compile(r"[A-Za-z*.-]*")
_OTHER = re.compile("[^ACGTN]")
"""Codes for one of several bases (R, Y, ...), gaps and stops: unknown."""


def sequences(lines: Iterable[str], stretch: int = STRETCH) -> Iterator[str]:
    """The sequences of a FASTA file in stretches of at most so many bases, over A, C, G, T and N.

    Lower case, which marks repeats, becomes upper case. Stretches of N alone are left out.

    >>> list(sequences([">17 test", "ACGTR", "acg", ">18", "NNNN"], stretch=6))
    ['ACGTNA', 'CG']
    """
    if stretch < 1:
        raise bad("stretch", "at least 1", stretch)
    waiting = ""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith((">", ";")):
            yield from _known(waiting)
            waiting = ""
            continue
        if not _LINE.fullmatch(text):
            raise Refusal(f"line {number} is no sequence of bases: {text[:20]!r}", "Is it a FASTA file?")
        waiting += _OTHER.sub("N", text.upper())
        while len(waiting) >= stretch:
            yield from _known(waiting[:stretch])
            waiting = waiting[stretch:]
    yield from _known(waiting)


def _known(bases: str) -> Iterator[str]:
    if bases.strip("N"):
        yield bases
