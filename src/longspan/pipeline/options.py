"""How documents are read: what a Reader keeps and every call may change."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict

from longspan.errors import bad, no_option, one_of, whole
from longspan.pipeline.global_tokens import GlobalTokens

OVERFLOW = ("error", "window", "truncate")
UNITS = ("sentences", "paragraphs", "blocks")


class ReadingOptions(TypedDict, total=False):
    """The fields of Options, as keyword arguments."""

    overflow: str
    limit: int | None
    overlap: int | None
    whole: bool
    budget: int
    deterministic: bool
    global_tokens: GlobalTokens | None
    structure: str | None
    progress: bool | None


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to do with long documents, which tokens are global, and how much is read at once.

    >>> Options(overflow="window").but(overlap=64).overlap
    64
    """

    overflow: str = "error"
    """A document of more than `limit` tokens is an "error", read in overlapping windows ("window"), or cut
    ("truncate"); results say so."""
    limit: int | None = None
    "Tokens of a document or window; None: as many as the model has positions."
    overlap: int | None = None
    "Tokens that neighbouring windows share; None: an eighth of a window."
    whole: bool = False
    """A model that reads block by block takes a text as one block if it has the positions for it, as it does
    queries; else only a text of up to two blocks."""
    budget: int = 8192
    "Tokens in one batch; a longer document goes alone."
    deterministic: bool = False
    """Every document in a batch of its own, which pins its result. Longspan's kernels give a document the
    same bits whatever stands beside it, but the matrix library behind torch may add in another order when a
    batch has another size, which shows in the last digits. It holds for one loaded model, one machine and
    one number of threads: weights that lie otherwise in memory can change the last digits, too."""
    global_tokens: GlobalTokens | None = None
    """Which tokens are global, where the family has such tokens: a rule, indices, a mask, character spans or
    a function, see longspan.pipeline.global_tokens; None: what suits the task."""
    structure: str | None = None
    """What of a text has a global token, where the family has a stream of them: "sentences", "paragraphs"
    (one each, besides those of their sentences) or "blocks"; None: what the model was made for."""
    progress: bool | None = None
    "A bar that counts tokens: always, never, or (None) on a terminal when it takes more than two seconds."

    def __post_init__(self) -> None:
        one_of("overflow", self.overflow, OVERFLOW)
        whole("budget", self.budget, 1)
        if self.limit is not None:
            whole("limit", self.limit, 1)
        if self.overlap is not None:
            whole("overlap", self.overlap, 0)
        if self.structure is not None:
            one_of("structure", self.structure, UNITS)
        for name in ("whole", "deterministic", "progress"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (value is None and name == "progress"):
                raise bad(name, "True or False", value)

    def but(self, **changes: Any) -> "Options":
        """The same options with some changed."""
        names = [field.name for field in fields(self)]
        for name in changes:
            if name not in names:
                raise no_option(name, names)
        return replace(self, **changes)
