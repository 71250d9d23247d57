"""Index: files in, the passages that answer a query out; only new and changed files are read."""

import os
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from longspan.errors import bad, one_of, whole
from longspan.search.compaction import compact
from longspan.search.faults import sound
from longspan.search.lock import ReadOnly, writing
from longspan.search.own_model import OwnModel
from longspan.search.query import Query
from longspan.search.rerank import MOST, Reranker, Rerankers
from longspan.search.results import Hits
from longspan.search.roots import add_roots, remove_roots
from longspan.search.store import Store
from longspan.search.update import Report, is_gone, listed, within
from longspan.search.verify import verify
from longspan.search.view import View, check_options
from longspan.search.writer import Writer
from longspan.text.documents import Limits

if TYPE_CHECKING:
    from longspan.reader import Reader
    from longspan.search.ways import QueryVectors

TOKENS = ("1bit", "8bit", "off")
"""How the vectors of tokens are kept."""


class Index:
    """Documents that can be searched by meaning and by words.

    `index = Index.open("my-index")`, `index.add(["docs/"])`, `print(index.search("who pays?"))`. Threads may
    share an index, and so may processes: all of them search at once, and those that change it take turns.
    """

    def __init__(self, store: Store, own: OwnModel, tokens: str | None = None) -> None:
        self._store, self._own, self._tokens = store, own, tokens
        self._last: tuple[tuple[str | None, str | None], View] | None = None
        self._viewing = threading.RLock()
        self._rerankers = Rerankers()

    @classmethod
    def open(
        cls,
        folder: str | Path,
        model: "str | Path | Reader | None" = None,
        *,
        tokens: str | None = None,
        adapter: str | None = None,
    ) -> Self:
        """The index in a folder; if there is none, `add` makes it.

        `model` is a Reader, a folder or a name on the hub; None is the model that the index was built with,
        for a new index the built-in model. `tokens` says how the vectors of single tokens are kept, which
        make the order of results better: "1bit" (the default), "8bit" (a little better, eight times the
        size) or "off"; an index that exists keeps what it was built with. `adapter` names the one that is
        merged into the model's weights, where its files hold several; the index remembers it.
        """
        if tokens is not None:
            one_of("tokens", tokens, TOKENS)
        store = Store(Path(folder).expanduser())
        return cls(store, OwnModel(store.db, model, adapter), tokens)

    @property
    def folder(self) -> Path:
        """Where the index is stored."""
        return self._store.folder

    @property
    def model(self) -> str | None:
        """The name of the model that the index was built with."""
        return self._store.db.get("model")

    @property
    def tokens(self) -> str:
        """How the vectors of tokens are kept: "1bit", "8bit" or "off"."""
        kept = self._store.db.get("token_kind")
        if kept is not None and self._tokens not in (None, kept):
            raise bad("tokens", f"{kept}, as the index was built", self._tokens, "Rebuild it with --rebuild.")
        return kept or self._tokens or TOKENS[0]

    @property
    def reader(self) -> "Reader":
        """The model, loaded when first needed; it must be the one that the index was built with."""
        return self._own.reader

    def add(
        self,
        paths: str | Path | Iterable[str | Path],
        *,
        vectors: bool = True,
        progress: bool | None = None,
        ocr: bool = False,
        forget: bool | None = None,
        wait: float | None = None,
        limits: Limits | None = None,
    ) -> Report:
        """Bring the index up to date with files and folders; files that are gone from them are forgotten.

        If more than half of what the index holds of one of them is gone, as when a disk is not mounted, these
        files are kept, and listed in the report as missing; `forget` True forgets them nevertheless, False
        forgets none.

        A file of the same size and time, or of the same content, is not read again, nor is a renamed one.
        Words come first, at tens of megabytes a second; then the model reads (see `embed`), unless `vectors`
        is False. What is done is committed bit by bit, so an interrupted run loses little. `progress` shows
        a bar; None: on a terminal, if it takes a while. `ocr` reads scanned pages and pictures by tesseract,
        also of files that were read without it. `wait` is how many seconds to wait for another process or
        thread that changes the index, None: as long as it takes. A file beyond `limits` is refused; None: the
        usual ones.
        """
        began, report = time.perf_counter(), Report()
        roots = listed(paths)
        for root in roots:
            if not os.path.exists(root):
                raise bad("paths", "files and folders that exist", str(root))
        with writing(self.folder, wait) as is_writable:
            add_roots(self._store.db, roots)
            writer = Writer(self._store, report, progress)
            writer.add_words(roots, ocr=ocr, forget=forget, limits=limits or Limits())
            if vectors:
                self._embed(writer, is_writable)
            if report.added or report.removed or report.changed or report.n_tokens:
                compact(self._store)
        report.seconds = time.perf_counter() - began
        return report

    def embed(
        self,
        *,
        inside: str | Path | Iterable[str | Path] | None = None,
        progress: bool | None = None,
        wait: float | None = None,
    ) -> Report:
        """Let the model read the documents that are found by their words only so far, or those `inside`."""
        began, report = time.perf_counter(), Report()
        with writing(self.folder, wait) as is_writable:
            roots = None if inside is None else listed(inside)
            self._embed(Writer(self._store, report, progress), is_writable, roots)
            if report.n_tokens:
                compact(self._store)
        report.seconds = time.perf_counter() - began
        return report

    def _embed(self, writer: Writer, is_writable: bool, roots: Sequence[Path] | None = None) -> None:
        if not is_writable and self._store.pending():  # before the model reads what cannot be kept
            raise ReadOnly(f"The index `{self.folder}` cannot be written: its folder is read-only.")
        writer.embed(lambda: self._own.reader_for(self.tokens), self.tokens, roots)

    def remove(self, paths: str | Path | Iterable[str | Path]) -> int:
        """Forget files and all files in folders, and say how many there were; no file is touched."""
        roots = listed(paths)
        with writing(self.folder):
            remove_roots(self._store.db, roots)
            return self._forget([file.path for file in self._store.files() if within(file.path, roots)])

    def prune(self) -> int:
        """Forget files that no longer exist, and say how many there were."""
        with writing(self.folder):
            return self._forget(self.missing)

    @property
    def missing(self) -> list[Path]:
        """The files that the index holds, but that no longer exist."""
        with sound(self.folder):
            return [file.path for file in self._store.files() if is_gone(file.path)]

    def clear(self) -> None:
        """Forget everything, the model too."""
        with writing(self.folder):
            self._store.clear()

    def _forget(self, paths: Sequence[Path]) -> int:
        if paths:
            with sound(self.folder), self._store.db.transaction():
                self._store.remove(paths)
                self._store.remove_orphans()
            compact(self._store)
        return len(paths)

    def search(
        self,
        query: str,
        top: int = 10,
        *,
        mode: str = "hybrid",
        by: str = "passage",
        inside: str | Path | Iterable[str | Path] | None = None,
        min_score: float | None = None,
        rerank: Reranker | None = None,
        rerank_top: int = MOST,
    ) -> Hits:
        """The `top` passages that answer `query` best, only from the files or folders `inside` unless None.

        mode is "dense" (meaning), "bm25" (words) or "hybrid" (both, and the tokens one by one).
        by="document" ranks documents as wholes and shows the best passage of each. "Exact phrases", -words,
        ``file:*.pdf``, type:pdf, before:2024-05 and after:2023 in the query narrow the search. Hits below
        `min_score` are left out; `hits.answered` says whether the best is good enough to be called an answer.
        `rerank` gives the `rerank_top` best candidates their final scores: a Reader that can rank, its folder
        or its name on the hub, or a function of pairs (query, passage) that gives scores.
        """
        check_options(query, top, mode, by)
        whole("rerank_top", rerank_top, 1)
        score = None if rerank is None else self._rerankers.function(rerank)
        asked = Query.parse(query)
        roots = None if inside is None else listed(inside)
        self._check_exists()
        if not len(self):
            return Hits(query, [])
        vectors = None if mode == "bm25" or not self._view().n_read else self._query_vectors(asked.text)
        count = top if score is None else max(top, rerank_top)
        with self._store.db.snapshot(), sound(self.folder):
            hits = self._view().search(asked, vectors, count, mode=mode, by=by, roots=roots)
        if score is not None and hits:
            hits = hits.reranked(score)[:top]
        kept = [hit for hit in hits if min_score is None or hit.score >= min_score]
        return Hits(
            query,
            kept,
            answered=hits.answered and bool(kept),
            read=self.share_read,
            asked=asked.text,
            likely=mode != "bm25" and score is None,
            reranked=score is not None,
        )

    def load_reranker(self, rerank: Reranker) -> None:
        """Load a re-ranker before the first search that uses it; an InputError if the model is none."""
        self._rerankers.function(rerank)

    def _check_exists(self) -> None:
        """Raise an InputError if there is nothing in the folder, whose name may be mistyped."""
        if not self._store.db.exists:
            repair = "Nothing is there yet: index.add(paths) fills it."
            raise bad("index", "a folder that holds an index", str(self.folder), repair)

    def _query_vectors(self, query: str) -> "QueryVectors | None":
        """What the model makes of a query; None if it sees nothing in it, such as in a lone accent."""
        from longspan.search.passages import encode_query

        vectors = encode_query(self.reader, query)
        return vectors if (vectors.offsets[:, 0] >= 0).any() else None

    @property
    def share_read(self) -> float:
        """How much of the text the model has read, from 0 to 1."""
        return self._view().share_read

    def _view(self) -> View:
        """The current state of the index, whichever process or thread wrote last."""
        with self._store.db.snapshot(), self._viewing:
            version = self._store.db.version
            if self._last is None or version != self._last[0]:
                with sound(self.folder):
                    self._last = version, View(self._store)
            return self._last[1]

    @property
    def files(self) -> list[Path]:
        """The files that the index holds."""
        return sorted(file.path for file in self._view().files)

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes on disk by what they are for."""
        return self._store.sizes()

    def __len__(self) -> int:
        return len(self._view())

    def __bool__(self) -> bool:
        return True

    def verify(self) -> None:
        """Compare the whole index with its checksums; damage raises a CheckpointError."""
        self._check_exists()
        with writing(self.folder):  # so that nobody has to wait for one long snapshot to end
            verify(self._store)

    def close(self) -> None:
        """Close the files of the index."""
        self._store.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}, {len(self.files)} files, {len(self)} passages, {self.model})"
