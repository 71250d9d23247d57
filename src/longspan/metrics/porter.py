"""Porter's stemmer, with the additions of NLTK's that Google's ROUGE uses."""

import re

_IRREGULAR = {
    **{word: word for word in ("sky", "news", "howe", "proceed", "exceed", "succeed")},
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    **{f"{word}{s}": word for word in ("inning", "outing", "canning") for s in ("", "s")},
}
_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "fulli": "ful",
}
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion"),
    *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)


def stem(word: str) -> str:
    """The stem of a lower-case word (Porter 1980).

    >>> stem("relational"), stem("dying"), stem("enjoyed")
    ('relat', 'die', 'enjoy')
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_plural, _past, _final_y, _step_2, _step_3, _step_4, _final_e, _final_l):
        word = step(word)
    return word


def _shape(word: str) -> str:
    """Each letter as c (a consonant) or v (a vowel): a y is what the letter before it is not.

    >>> _shape("syzygy"), _shape("toy")
    ('cvcvcv', 'cvc')
    """
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _short(word: str) -> bool:
    """Whether it ends like "hop", or is like "at"; then an e may have stood behind it."""
    shape = _shape(word)
    return shape == "vc" or (shape.endswith("cvc") and word[-1] not in "wxy")


def _plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    match = re.fullmatch(r"(.*)(?:ed|ing)", word)
    if not match or "v" not in _shape(match[1]):
        return word
    base = match[1]
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if base[-2:-1] == base[-1] and _shape(base)[-1] == "c":
        return base if base[-1] in "lsz" else base[:-1]
    return base + "e" if _measure(base) == 1 and _short(base) else base


def _final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and len(word) > 2 and _shape(word)[-2] == "c" else word


def _step_2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]):
        return _step_2(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) else word
    return _replaced(word, _STEP_2)


def _step_3(word: str) -> str:
    return _replaced(word, _STEP_3)


def _step_4(word: str) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            base = word[: -len(ending)]
            whole = _measure(base) > 1 and (ending != "ion" or base[-1] in "st")
            return base if whole else word
    return word


def _final_e(word: str) -> str:
    if not word.endswith("e"):
        return word
    measure = _measure(word[:-1])
    return word[:-1] if measure > 1 or (measure == 1 and not _short(word[:-1])) else word


def _final_l(word: str) -> str:
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _replaced(word: str, endings: dict[str, str]) -> str:
    """The first ending that the word has is replaced, if a vowel and a consonant stand before it."""
    for ending, other in endings.items():
        if word.endswith(ending):
            base = word[: -len(ending)]
            return base + other if _measure(base) else word
    return word
