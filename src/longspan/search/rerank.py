"""Re-rankers: models that read a query with each of the best passages, and give these their final scores."""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union, cast

from longspan.errors import bad

if TYPE_CHECKING:
    from longspan.reader import Reader

Rerank = Callable[[list[tuple[str, str]]], Iterable[float]]
"""A score for each pair of a query and a passage, such as `CrossEncoder.predict` of sentence-transformers."""
Reranker: TypeAlias = Union[Rerank, "Reader", str, Path]
"""A function of that kind, a Reader that can rank, or what longspan.load takes."""
MOST = 50
"""How many passages it is given, unless the user says otherwise."""


def load_reranker(model: str | Path, adapter: str | None = None) -> "Reader":
    """The model of that name, if it can rank; another is an InputError."""
    from longspan.loading import load

    reader = load(model, adapter=adapter)
    reader.check_ranks()
    return reader


class Rerankers:
    """The re-ranker that was asked for last stays loaded, unless its files change."""

    def __init__(self) -> None:
        self._last: tuple[tuple[str, str | None], Reader] | None = None
        self._loading = threading.RLock()

    def function(self, reranker: Reranker) -> Rerank:
        """The function that scores pairs; passages longer than the model are read in windows."""
        if isinstance(reranker, str | Path):
            reranker = self._loaded(reranker)
        if hasattr(reranker, "check_ranks"):  # a Reader, without importing what it needs
            reader = cast("Reader", reranker)
            reader.check_ranks()
            return lambda pairs: reader.predict(pairs, progress=False).tolist()
        if not callable(reranker):
            raise bad("rerank", "a Reader, a model or a function", type(reranker).__name__)
        return reranker

    def _loaded(self, model: str | Path) -> "Reader":
        from longspan.builtin import ensure
        from longspan.hub import resolve
        from longspan.search.update import stamp_of

        with self._loading:
            ensure(model)
            folder = resolve(model)
            key = str(folder), stamp_of(folder)
            if self._last is None or self._last[0] != key:
                self._last = key, load_reranker(folder)
            return self._last[1]
