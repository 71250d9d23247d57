"""Which pairs a mask function of transformers allows. They are closures; one that is not known is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from types import CodeType, FunctionType
from typing import Any, cast

import torch
from torch import Tensor
from transformers import masking_utils as theirs

from longspan.errors import InputError
from longspan.patterns import Causal, Full, Window
from longspan.patterns.base import Pattern


@dataclass(frozen=True, eq=False)
class Band:
    """Keys from `left` tokens before the query to `right` after it (None: no limit), in its own segment."""

    left: int | None = None
    right: int | None = None
    segments: Tensor | None = None
    "(B, L) the sequence that each token belongs to, where several are packed into a row."

    def __post_init__(self) -> None:
        if any(side is not None and side < 0 for side in (self.left, self.right)):
            raise refusal("a window without the token itself")

    def __and__(self, other: "Band") -> "Band":
        if self.segments is not None and other.segments is not None:
            raise refusal("two packings of sequences at once")
        segments = other.segments if self.segments is None else self.segments
        return Band(_least(self.left, other.left), _least(self.right, other.right), segments)

    def __or__(self, other: "Band") -> "Band":
        """All bands hold the token itself, so that there is no gap between two of them."""
        if self.segments is not None or other.segments is not None:
            raise refusal("more than packed sequences")
        return Band(_most(self.left, other.left), _most(self.right, other.right))

    @property
    def pattern(self) -> Pattern:
        """The band without its segments, which are documents of a layout."""
        if self.left is None and self.right in (None, 0):
            return Full() if self.right is None else Causal()
        return Window(left=self.left, right=self.right)


def band(function: Callable[..., Any]) -> Band:
    """What a mask function allows, if it is composed of those that transformers makes for text.

    >>> window = band(theirs.sliding_window_causal_mask_function(4))
    >>> window.left, window.right
    (3, 0)
    """
    if function is theirs.causal_mask_function:
        return Band(right=0)
    if function is theirs.bidirectional_mask_function:
        return Band()
    if not isinstance(function, FunctionType):
        raise refusal(repr(function))
    for code, read in MADE.items():
        if function.__code__ is code:
            return read(**_closure(function))
    for ours, read in WRITTEN.items():
        if _same(function, ours):
            return read(**_closure(function))
    raise refusal(f"{function.__qualname__!r}")


def refusal(what: str) -> InputError:
    """The error for pairs that Longspan does not know, to be raised by the caller."""
    return InputError(
        "`mask_function` must be causal or bidirectional, perhaps in a sliding window and in packed "
        f"sequences, but is {what}, which Longspan does not compute. "
        'Use attn_implementation="sdpa" for this model.'
    )


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _most(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def _all(mask_functions: tuple[Callable[..., Any], ...]) -> Band:
    return reduce(and_, map(band, mask_functions))


def _any(mask_functions: tuple[Callable[..., Any], ...]) -> Band:
    return reduce(or_, map(band, mask_functions))


def _behind(sliding_window: int) -> Band:
    return Band(left=sliding_window - 1)


def _around(sliding_window: int) -> Band:
    return Band(left=sliding_window, right=sliding_window)


def _within(sliding_window: int) -> Band:
    return Band(left=sliding_window - 1, right=sliding_window - 1)


def _packed(packed_sequence_mask: Tensor) -> Band:
    return Band(segments=packed_sequence_mask)


def _closure(function: FunctionType) -> dict[str, Any]:
    """What a function that another one made has kept of it, by name."""
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    return dict(zip(function.__code__.co_freevars, cells, strict=True))


def _same(function: FunctionType, other: FunctionType) -> bool:
    """Whether both were compiled from one text, but for names of arguments and documentation."""
    codes = [
        (x.co_code, x.co_names, x.co_freevars, x.co_argcount, x.co_flags, _constants(x))
        for x in (function.__code__, other.__code__)
    ]
    names = function.__code__.co_names
    known = all(function.__globals__.get(name) is other.__globals__.get(name) for name in names)
    return codes[0] == codes[1] and known


def _constants(code: CodeType) -> tuple[object, ...]:
    return tuple(value for value in code.co_consts if not isinstance(value, str))


def _overlay(sliding_window: int) -> FunctionType:
    def inner(batch: int, head: int, query: int, key: int) -> bool:
        """Models with bidirectional windows have this in their own files."""
        return abs(query - key) < sliding_window

    return cast(FunctionType, inner)


def _everything() -> FunctionType:
    return cast(FunctionType, lambda *args: torch.tensor(True, dtype=torch.bool))


# Functions that one function made have one code object; their closures are its arguments.
MADE: dict[CodeType, Callable[..., Band]] = {
    theirs.and_masks(theirs.causal_mask_function).__code__: _all,
    theirs.or_masks(theirs.causal_mask_function).__code__: _any,
    theirs.sliding_window_overlay(1).__code__: _behind,
    theirs.sliding_window_bidirectional_overlay(1).__code__: _around,
    theirs.packed_sequence_mask_function(torch.zeros(1, 1)).__code__: _packed,
}
# Others are written in the files of several models, alike.
WRITTEN: dict[FunctionType, Callable[..., Band]] = {_overlay(1): _within, _everything(): Band}
