"""One grammar for every error: the name, what it must be, what it is, and how to repair it."""

import math
import operator
from collections.abc import Iterable
from difflib import get_close_matches

FARTHEST = 2**30 - 1  # no position lies beyond, which leaves room to add reaches in int32


class LongspanError(Exception):
    """Anything Longspan raises on purpose."""


class InputError(LongspanError, ValueError):
    """A value or type given by the user that cannot be used."""


class BackendError(LongspanError, RuntimeError):
    """No backend can do what was asked; the message lists every reason."""


class CheckpointError(LongspanError, ValueError):
    """A file that is not safe, not whole or not what it should be, and was therefore not loaded."""


class DocumentError(LongspanError, ValueError):
    """A file that cannot be read as a document; the message says why and what helps."""


def bad(name: str, requirement: str, value: object, repair: str = "") -> InputError:
    """The error for one bad value, to be raised by the caller.

    >>> str(bad("radius", "at least 1", 0, "Use Full() for unrestricted attention."))
    '`radius` must be at least 1, but is 0. Use Full() for unrestricted attention.'
    """
    sentence = f"`{name}` must be {requirement}, but is {value!r}."
    return InputError(f"{sentence} {repair}".rstrip())


def missing(name: str, requirement: str, repair: str = "") -> InputError:
    """The error for a value that was not given, to be raised by the caller.

    >>> str(missing("QUERY", "a question", "As in: longspan search 'who pays?'"))
    "`QUERY` is missing: it must be a question. As in: longspan search 'who pays?'"
    """
    return InputError(f"`{name}` is missing: it must be {requirement}. {repair}".rstrip())


def refused(file: object, reason: str, repair: str = "") -> CheckpointError:
    """The error for a file that is not loaded, to be raised by the caller.

    >>> str(refused("config.json", "it is empty", "Download it again."))
    '`config.json` is refused: it is empty. Download it again.'
    """
    return CheckpointError(f"`{file}` is refused: {reason}. {repair}".rstrip())


def unreadable(file: object, reason: str, repair: str = "") -> DocumentError:
    """The error for a document that is not read, to be raised by the caller.

    >>> str(unreadable("report.pdf", "it is encrypted", "Save it without a password."))
    '`report.pdf` cannot be read: it is encrypted. Save it without a password.'
    """
    return DocumentError(f"`{file}` cannot be read: {reason}. {repair}".rstrip())


def no_tensor(name: str, value: object) -> InputError:
    """The error for a list or another value in place of a tensor, to be raised by the caller.

    >>> str(no_tensor("labels", [0, 1]))
    "`labels` must be a tensor, but is a 'list'. Make it one with torch.tensor(labels)."
    """
    kind = type(value).__name__
    return InputError(f"`{name}` must be a tensor, but is a {kind!r}. Make it one with torch.tensor({name}).")


def guess(name: object, names: Iterable[str]) -> str:
    """The sentence that offers the closest of some names, or nothing.

    >>> guess("clasify", ["classify", "tag"])
    'Did you mean classify?'
    """
    near = get_close_matches(str(name).lower(), list(names), n=1)
    return f"Did you mean {near[0]}?" if near else ""


def no_option(name: str, names: Iterable[str]) -> InputError:
    """The error for an option that there is not among some names, to be raised by the caller.

    >>> str(no_option("beems", ["beams", "longest"]))
    'There is no option `beems`. Did you mean beams?'
    """
    all_names = list(names)
    known = f"Options are {', '.join(all_names)}."
    return InputError(f"There is no option `{name}`. {guess(name, all_names) or known}")


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """`value` if it is one of the allowed names, else the error that lists them.

    >>> one_of("mode", "dense", ["dense", "bm25"])
    'dense'
    """
    choices = list(allowed)
    if isinstance(value, str) and value in choices:
        return value
    raise bad(name, f"one of {', '.join(choices)}", value, guess(value, choices))


def whole(name: str, value: object, least: int, repair: str = "", *, most: int = FARTHEST) -> int:
    """`value` as a plain int from `least` to `most`, or the error that says why not.

    >>> whole("block", 64, 1)
    64
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise bad(name, "a whole number", value, repair) from None
    if isinstance(value, bool):
        raise bad(name, "a whole number", value, repair)
    if number < least:
        raise bad(name, f"at least {least}", number, repair)
    if number > most:
        raise bad(name, f"at most {most}", number)
    return number


def number(name: str, value: object, least: float, most: float, *, below: bool = False) -> float:
    """`value` as a float from `least` to `most` (below it, if asked), or the error that says why not."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise bad(name, "a number", value)
    if not least <= value <= most or (below and value == most):
        raise bad(name, f"from {least:g} to {'below ' if below else ''}{most:g}", value)
    return float(value)
