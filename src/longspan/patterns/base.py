"""The pattern: a value that says how often a query may see a key, and how patterns are combined.

`count` is the truth. Everything else a pattern says of itself (reach, step, landmarks, grain, shift,
splits_marked) is a hint that lets plans be built fast; each is a superset of the truth or agrees with it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from inspect import Parameter, getdoc, signature
from typing import ClassVar

import numpy as np

from longspan.errors import FARTHEST, InputError, bad
from longspan.layout import Layout, Site
from longspan.patterns.draw import draw, draw_html
from longspan.shapes import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Spans:
    """T query tiles: where their queries stand and whether they are marked."""

    lo: IntArray
    hi: IntArray
    length: IntArray
    marked: BoolArray
    "The tile holds marked rows only; False: unmarked rows only, unless mixed."
    mixed: BoolArray
    "The tile may hold both."


@dataclass(frozen=True, eq=False)
class Reach:
    """A superset of the keys that T query tiles may see: J intervals of positions each, and landmarks."""

    lo: IntArray
    hi: IntArray
    "(T, J), inclusive; lo > hi is empty."
    step: IntArray
    "(J,): only keys whose position equals the query's modulo step."
    landmarks: BoolArray
    "(T,): landmark keys anywhere may be seen too."

    @staticmethod
    def of(
        spans: Spans,
        *intervals: tuple[IntArray | int, IntArray | int],
        step: Iterable[int] | None = None,
        landmarks: bool = False,
    ) -> "Reach":
        """The reach made of intervals (lo, hi), each end a number or one number per tile."""
        tiles, steps = spans.lo.size, [1] * len(intervals) if step is None else list(step)
        ends = np.empty((2, tiles, len(intervals)), np.int32)
        for j, (lo, hi) in enumerate(intervals):
            ends[0, :, j] = np.clip(lo, -FARTHEST, FARTHEST)
            ends[1, :, j] = np.clip(hi, -FARTHEST, FARTHEST)
        return Reach(ends[0], ends[1], np.asarray(steps, np.int32), np.full(tiles, landmarks))

    @property
    def some(self) -> BoolArray:
        """(T,): the tile may see anything at all."""
        filled: BoolArray = np.any(self.lo <= self.hi, axis=1)
        return self.landmarks | filled

    def only(self, tiles: BoolArray) -> "Reach":
        """The same where `tiles` is true, nothing elsewhere."""
        hi = np.where(tiles[:, None], self.hi, -FARTHEST - 1).astype(np.int32)
        return Reach(self.lo, hi, self.step, self.landmarks & tiles)

    def __or__(self, other: "Reach") -> "Reach":
        lo, hi = np.hstack([self.lo, other.lo]), np.hstack([self.hi, other.hi])
        return Reach(lo, hi, np.append(self.step, other.step), self.landmarks | other.landmarks)

    def __and__(self, other: "Reach") -> "Reach":
        flat = self.lo.shape[0], self.step.size * other.step.size  # (T, J, J') -> (T, J * J')
        lo = np.maximum(self.lo[:, :, None], other.lo[:, None, :]).reshape(flat)
        hi = np.minimum(self.hi[:, :, None], other.hi[:, None, :]).reshape(flat)
        step = np.maximum(self.step[:, None], other.step[None, :]).reshape(-1)
        # A key seen as one side's landmark and inside the other's interval is still a landmark.
        landmarks = (self.landmarks & other.some) | (other.landmarks & self.some)
        return Reach(lo, hi, step, landmarks)


@dataclass(frozen=True, repr=False)
class Pattern:
    """What may attend to what: a frozen, hashable value. Combine by `|` (larger), `&` (smaller), `+` (sum).

    A pattern never looks at `document` or `exists`: documents never see each other anyway. Where it reads a
    document's length, it is the query's. Subclasses are frozen dataclasses and register themselves by name.
    """

    registry: ClassVar[dict[str, type["Pattern"]]] = {}

    def __init_subclass__(cls) -> None:
        if not cls.__name__.startswith("_"):
            Pattern.registry[cls.__name__] = cls

    def count(self, q: Site, k: Site) -> IntArray:
        """How often each query counts each key, broadcast: 0 may not, 1 may, m is counted m times."""
        raise NotImplementedError

    def matrix(self, queries: Layout, keys: Layout | None = None) -> IntArray:
        """(Nq, Nk): the counts of all pairs of rows, 0 between documents and for rows that do not exist.

        >>> from longspan.patterns import Window
        >>> Window(1).matrix(Layout.packed([2, 3])).tolist()
        [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1]]
        """
        q, k = queries.sites[:, None], (queries if keys is None else keys).sites[None, :]
        meet = (q.document == k.document) & q.exists & k.exists
        return np.where(meet, self.count(q, k), np.int8(0))

    def reach(self, spans: Spans) -> Reach:
        """Which keys the query tiles may see: never less than the truth."""
        return Reach.of(spans, (-FARTHEST, FARTHEST))

    @property
    def step(self) -> int:
        """The stride at which tiles are best laid: a window's dilation; 0 has no opinion."""
        return 1

    @property
    def grain(self) -> int:
        """The count is constant on squares of this many positions; 0 for squares of any size."""
        return 1

    @property
    def shift(self) -> int:
        """The count stays when query and key move along by this many positions; 0 if that is not so.

        Not 0 also promises that the count reads nothing but positions, `last` and marks.
        """
        return 0

    @property
    def splits_marked(self) -> bool:
        """Marked query rows behave unlike unmarked ones."""
        return False

    def landmarks(self, k: Site) -> BoolArray:
        """Keys seen from afar, worth gathering into dense tiles of their own."""
        return np.zeros(k.shape, bool)

    @property
    def heads_declared(self) -> int | None:
        """How many heads a per-head value lists; None if all heads are alike."""
        return None

    def head(self, h: int) -> "Pattern":
        """The pattern of one head."""
        return self

    def at(self, length: int) -> "Pattern":
        """The pattern for documents of one length."""
        return self

    def explain(self) -> str:
        """What the pattern allows, in one sentence for each part."""
        return (getdoc(type(self)) or repr(self)).splitlines()[0]

    def drawn_parts(self) -> "list[tuple[Pattern, Pattern]]":
        """The parts with a color each in a picture: as written, and as the whole pattern restricts them."""
        return [(self, self)]

    draw, _repr_html_ = draw, draw_html

    def __or__(self, other: "Pattern") -> "Pattern":
        """The larger count: what either allows."""
        return _combined("Union", self, other)

    def __and__(self, other: "Pattern") -> "Pattern":
        """The smaller count: what both allow."""
        return _combined("Intersection", self, other)

    def __add__(self, other: "Pattern") -> "Pattern":
        """The sum of the counts: a key allowed by both is counted twice."""
        return _combined("Sum", self, other)

    def to_json(self) -> dict[str, object]:
        """The pattern as plain JSON values: {"pattern": name, field: value, ...}."""
        values = {name: _plain(value) for name, value in self._arguments().items()}
        return {"pattern": type(self).__name__, **values}

    def _arguments(self) -> dict[str, object]:
        """What the constructor must be given to make this value again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        shown, usual = [], signature(type(self)).parameters
        for name, value in self._arguments().items():
            if usual[name].default is Parameter.empty:
                shown.append(repr(value))
            elif value != usual[name].default:
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @staticmethod
    def from_json(data: Mapping[str, object]) -> "Pattern":
        """The pattern that `to_json` wrote; unknown names and keys are errors."""
        if not isinstance(data, Mapping) or "pattern" not in data:
            raise bad("data", 'a mapping with the key "pattern"', data)
        if not isinstance(name := data["pattern"], str) or name not in Pattern.registry:
            raise bad("pattern", f"one of {', '.join(sorted(Pattern.registry))}", name)
        make: Callable[..., Pattern] = Pattern.registry[name]
        values = {key: value for key, value in data.items() if key != "pattern"}
        known = list(signature(make).parameters)
        for key in values:
            if key not in known:
                raise bad("key", f"one of {', '.join(known) or 'none'} in {name}", key)
        try:
            return make(**{key: _rich(value) for key, value in values.items()})
        except TypeError as error:
            raise InputError(f"`{name}` must be given all its values, but {error}.") from None


def counts(allowed: BoolArray | np.bool_, q: Site, k: Site) -> IntArray:
    """A yes or no as counts 1 and 0, spread over all pairs without copying."""
    return np.broadcast_to(np.asarray(allowed).view(np.int8), np.broadcast_shapes(q.shape, k.shape))


def _combined(kind: str, a: Pattern, b: Pattern) -> Pattern:
    """One flat composite, so that a | b | c has three parts."""
    if not isinstance(b, Pattern):
        return NotImplemented
    composite: Callable[..., Pattern] = Pattern.registry[kind]  # by name: compose.py stands on this file
    pieces: list[Pattern] = []
    for part in (a, b):
        pieces += getattr(part, "parts", ()) if type(part) is composite else (part,)
    return composite(tuple(pieces))


def _plain(value: object) -> object:
    if isinstance(value, Pattern):
        return value.to_json()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _rich(value: object) -> object:
    if isinstance(value, Mapping):
        return Pattern.from_json(value)
    return tuple(_rich(item) for item in value) if isinstance(value, list) else value
