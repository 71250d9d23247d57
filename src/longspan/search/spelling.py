"""Other spellings of a word: British and American, with a hyphen or without, and one slip of the keyboard."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RULES = tuple(
    (re.compile(british), american, re.compile(us), uk)
    for british, american, us, uk in (
        (
            r"our(?=$|s$|ed$|ing|able|ful|less|ite|ist)",
            "or",
            r"or(?=$|s$|ed$|ing|able|ful|less|ite|ist)",
            "our",
        ),
        (r"(?<=[bcdt])re(?=s?$|d$)", "er", r"(?<=[bcdt])er(?=s?$|ed$)", "re"),
        (r"is(?=e$|ed$|es$|er|ing$|ation|able)", "iz", r"iz(?=e$|ed$|es$|er|ing$|ation|able)", "is"),
        (r"ys(?=e$|ed$|es$|er|ing$)", "yz", r"yz(?=e$|ed$|es$|er|ing$)", "ys"),
        (r"ogue(?=s?$)", "og", r"og(?=s?$)", "ogue"),
        (r"enc(?=e$|es$|ed$)", "ens", r"ens(?=e$|es$|ed$)", "enc"),
        (r"ll(?=ed$|ing$|er|or|ment)", "l", r"(?<=[aeiou])l(?=ed$|ing$|er|or|ment)", "ll"),
        (r"[ao]e", "e", r"(?!)", ""),
        (r"mme(?=s?$)", "m", r"(?<=gra)m(?=s?$)", "mme"),
        (r"que(?=s?$)", "ck", r"(?<=e)ck(?=s?$)", "que"),
    )
)
SHORTEST = 4
"""Letters of a word that may have a slip in it: shorter ones are too close to others."""


def across_the_ocean(word: str) -> list[str]:
    """The word in American and in British spelling, as far as rules tell; many of these do not exist.

    >>> across_the_ocean("colour"), across_the_ocean("license")
    (['color'], ['licence'])
    """
    forms = []
    for british, american, us, uk in _RULES:
        forms += [british.sub(american, word, count=1), us.sub(uk, word, count=1)]
    return [form for form in dict.fromkeys(forms) if form != word]


def joined(words: Sequence[str]) -> list[tuple[int, str]]:
    """Neighbors written as one word, with the place of the first: "e mail" is also "email".

    >>> joined(["send", "e", "mail"])
    [(0, 'sende'), (1, 'email')]
    """
    return [(place, a + b) for place, (a, b) in enumerate(pairwise(words))]


def halves(word: str) -> list[tuple[str, str]]:
    """The word written as two, each of at least two letters; a number has no halves.

    >>> halves("email")
    [('em', 'ail'), ('ema', 'il')]
    """
    return [(word[:cut], word[cut:]) for cut in range(2, len(word) - 1)] if word.isalpha() else []


def slips(word: str) -> Iterable[str]:
    """All words at distance 1: a letter left out, doubled or added, changed, or swapped with the next.

    >>> "agreement" in set(slips("aggreement")), "receive" in set(slips("recieve"))
    (True, True)
    """
    if len(word) < SHORTEST or not word.isalpha():
        return
    for i in range(len(word)):
        yield word[:i] + word[i + 1 :]
        if i + 1 < len(word):
            yield word[:i] + word[i + 1] + word[i] + word[i + 2 :]
        for letter in _LETTERS:
            yield word[:i] + letter + word[i + 1 :]
            yield word[:i] + letter + word[i:]
    for letter in _LETTERS:
        yield word + letter
