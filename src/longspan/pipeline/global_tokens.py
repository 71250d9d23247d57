"""Which tokens of a document are global: by index, mask, characters of the text, or by a rule."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import numpy as np

from longspan.errors import InputError, bad, whole
from longspan.families.config import Rule as Rule
from longspan.shapes import BoolArray, IntArray
from longspan.text.encoding import Encoding

RULES: tuple[str, ...] = get_args(Rule)
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Globals:
    """Global tokens, given in one way, or in several that agree; indices and spans for all documents or each.

    >>> from longspan.text.encoding import Encoding
    >>> columns = np.array([7, 5, 6, 8]), np.zeros(4, int), np.array([[0, 0], [0, 3], [4, 9], [0, 0]])
    >>> hello = Encoding(*columns, source=np.array([-1, 0, 0, -1]))
    >>> Globals(rule="first").resolve([hello]), Globals(spans=[(4, 6)]).resolve([hello])
    ([(0,)], [(2,)])
    """

    indices: Sequence[int] | Sequence[Sequence[int]] | None = None
    mask: Sequence[Sequence[bool]] | Sequence[BoolArray] | None = None
    "One mask for each document."
    spans: Sequence[Span] | Sequence[Sequence[Span]] | None = None
    "Stretches (start, end) of the text, in characters: every token that touches one is global."
    pair_spans: Sequence[Span] | Sequence[Sequence[Span]] | None = None
    "The same, of the pair."
    rule: Rule | Callable[[Encoding], Iterable[int]] | None = None
    """none, first: token 0; question: all before the first separator; choice: all after the separators in the
    middle, the last one included; separators; all. Or a function of the encoding."""

    def __post_init__(self) -> None:
        if isinstance(self.rule, str) and self.rule not in RULES:
            raise bad("rule", f"one of {', '.join(RULES)}, or a function", self.rule)
        if not self._kinds():
            raise InputError('`Globals` must be told which tokens are global. Use rule="none" for none.')

    @staticmethod
    def of(value: "GlobalTokens") -> "Globals":
        """Whatever a user may say of global tokens, as one kind of value."""
        if isinstance(value, Globals):
            return value
        if isinstance(value, Mapping):
            return Globals(**value)  # type: ignore[arg-type]
        if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
            return Globals(indices=list(value))
        return Globals(rule=value)

    def resolve(self, encodings: Sequence[Encoding]) -> list[tuple[int, ...]]:
        """Each document's global tokens, in order."""
        ways = {name: find(encodings) for name, find in self._kinds().items()}
        (first, answer), *rest = ways.items()
        for name, other in rest:
            for document, (a, b) in enumerate(zip(answer, other, strict=True)):
                if a != b:
                    raise InputError(
                        f"`{first}` and `{name}` must agree, but mark {list(a)} and {list(b)} of document "
                        f"{document}. Give one of the two."
                    )
        return answer

    def _kinds(self) -> dict[str, Callable[[Sequence[Encoding]], list[tuple[int, ...]]]]:
        spans = self.spans is not None or self.pair_spans is not None
        ways = {
            "indices": (self.indices is not None, self._by_indices),
            "mask": (self.mask is not None, self._by_mask),
            "spans": (spans, self._by_spans),
            "rule": (self.rule is not None, self._by_rule),
        }
        return {name: find for name, (there, find) in ways.items() if there}

    def _by_indices(self, encodings: Sequence[Encoding]) -> list[tuple[int, ...]]:
        lists = _each("indices", self.indices, encodings, flat=_is_number)
        return [_indices(chosen, e) for chosen, e in zip(lists, encodings, strict=True)]

    def _by_mask(self, encodings: Sequence[Encoding]) -> list[tuple[int, ...]]:
        masks = [np.asarray(mask) for mask in self.mask or ()]
        if len(masks) != len(encodings):
            raise bad("mask", f"one mask for each of the {len(encodings)} documents", f"{len(masks)} masks")
        for i, (mask, encoding) in enumerate(zip(masks, encodings, strict=True)):
            if mask.dtype != np.bool_ or mask.shape != (len(encoding),):
                value = f"{mask.dtype.name} of shape {mask.shape}"
                raise bad(f"mask[{i}]", f"boolean, one for each of the {len(encoding)} tokens", value)
        return [tuple(np.flatnonzero(mask).tolist()) for mask in masks]

    def _by_spans(self, encodings: Sequence[Encoding]) -> list[tuple[int, ...]]:
        touched: list[set[int]] = [set() for _ in encodings]
        for source, name in enumerate(("spans", "pair_spans")):
            lists = _each(name, getattr(self, name) or (), encodings, flat=_is_span)
            for tokens, spans, encoding in zip(touched, lists, encodings, strict=True):
                for span in spans:
                    tokens.update(_touched(name, span, encoding, source))
        return [tuple(sorted(tokens)) for tokens in touched]

    def _by_rule(self, encodings: Sequence[Encoding]) -> list[tuple[int, ...]]:
        rule = self.rule if callable(self.rule) else _RULE[str(self.rule)]
        return [_indices(rule(encoding), encoding) for encoding in encodings]


GlobalTokens = (
    Globals
    | Rule
    | Callable[[Encoding], Iterable[int]]
    | Sequence[int]
    | Sequence[Sequence[int]]
    | IntArray
    | Mapping[str, object]
)
"""What users may say of global tokens: a rule's name, indices for all documents or for each, a function,
fields of `Globals`, or one."""


def _separators(encoding: Encoding) -> IntArray:
    """The tokens of the frame but for the one that opens it."""
    frame = np.flatnonzero(encoding.source < 0)
    return frame[frame > 0]


def _pair_separators(encoding: Encoding) -> IntArray:
    separators = _separators(encoding)
    if separators.size < 2:
        repair = "Encode a text and its pair, or say which tokens are global."
        raise bad("rule", "fit for a single text, which has no question", "question or choice", repair)
    return separators


def _choice(encoding: Encoding) -> IntArray:
    last = int(_pair_separators(encoding)[-1])
    pair = np.flatnonzero(encoding.source == 1)
    return np.arange(pair[0] if pair.size else last, len(encoding))


_RULE: dict[str, Callable[[Encoding], IntArray]] = {
    "none": lambda encoding: np.zeros(0, np.int64),
    "first": lambda encoding: np.arange(min(1, len(encoding))),
    "question": lambda encoding: np.arange(_pair_separators(encoding)[0]),
    "choice": _choice,
    "separators": _separators,
    "all": lambda encoding: np.arange(len(encoding)),
}


def _is_number(value: object) -> bool:
    return np.ndim(value) == 0  # type: ignore[arg-type]


def _is_span(value: Any) -> bool:
    return len(value) == 2 and all(_is_number(end) for end in value)


def _each(
    name: str, values: Any, encodings: Sequence[Encoding], flat: Callable[[Any], bool]
) -> Sequence[Any]:
    """One list for each document: the given ones, or the same for all."""
    if len(values) == 0 or all(flat(value) for value in values):
        return [values] * len(encodings)
    if len(values) != len(encodings) or any(_is_number(value) for value in values):
        value = f"{len(values)} of them"
        raise bad(name, f"one list for all, or one for each of the {len(encodings)} documents", value)
    return list(values)


def _indices(chosen: Iterable[int], encoding: Encoding) -> tuple[int, ...]:
    most = len(encoding) - 1
    return tuple(sorted({whole("indices", index, 0, most=most) for index in chosen}))


def _touched(name: str, span: Span, encoding: Encoding, source: int) -> list[int]:
    if not _is_span(span) or not 0 <= whole(name, span[0], 0) < whole(name, span[1], 0):
        raise bad(name, "pairs (start, end) with start < end", span)
    begin, end = encoding.offsets.T
    here = (encoding.source == source) & (begin < span[1]) & (end > span[0])
    if not here.any():
        raise bad(name, "stretches that hold a token", span, "Count characters of the string you gave.")
    return [int(index) for index in np.flatnonzero(here)]
