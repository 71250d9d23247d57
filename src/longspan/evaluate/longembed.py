"""LongEmbed's QMSum task (Zhu et al. 2024, arXiv:2404.12096): from summaries to whole meetings."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longspan.errors import bad
from longspan.evaluate.answers import MODES
from longspan.evaluate.collections import Collection, Query, meetings
from longspan.evaluate.figures import Row, row
from longspan.progress import progress_bar
from longspan.search.index import Index

if TYPE_CHECKING:
    from longspan.reader import Reader

NAME, FIGURE, DEPTH = "LongEmbed QMSum", "nDCG@10", 10
PUBLISHED = {"BM25 (bm25s)": 0.832, "GTE-ModernColBERT": 0.799, "bge-m3": 0.361, "all-MiniLM-L6-v2": 0.163}
"""Quoted from published results, not measured here."""


def longembed_qmsum(folder: str | Path) -> Collection:
    """The meetings of train/ and val/, and the distinct summaries in them: 197 documents, 1,527 queries.

    As in LongEmbed, which takes SCROLLS's version, queries are the summaries, not the questions they answer
    (many of which, such as "Summarize the whole meeting", fit every meeting), and turns keep their marks.
    """
    parts = [Path(folder).expanduser() / part for part in ("train", "val")]
    if missing := [part.name for part in parts if not part.is_dir()]:
        raise bad("--longembed-qmsum", f"a folder with {' and '.join(missing)}", str(folder))
    documents, documents_of = list[str](), dict[str, int]()
    for text, summaries in (pair for part in parts for pair in meetings(part, "--longembed-qmsum", _turns)):
        for summary in summaries:
            documents_of.setdefault(summary, len(documents))
        documents.append(text)
    queries = [Query(text, document) for text, document in documents_of.items()]
    return Collection(NAME, documents, queries)


def _turns(meeting: dict[str, Any]) -> tuple[str, list[str]]:
    """A meeting's text and its summaries."""
    asked = meeting["general_query_list"] + meeting["specific_query_list"]
    turns = [f"{turn['speaker']}: {turn['content']}" for turn in meeting["meeting_transcripts"]]
    return "\n".join(turns), [str(entry["answer"]) for entry in asked]


def by_ndcg(
    collection: Collection,
    model: "str | Path | Reader | None",
    folder: str | Path | None = None,
    modes: Sequence[str] = MODES,
) -> Iterator[Row]:
    """nDCG@10 of our search for documents by each mode, then the published rows.

    The documents and the index are kept in `folder`, if there is one.
    """
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(folder or temporary)
        texts = place / "documents"
        texts.mkdir(parents=True, exist_ok=True)
        for number, text in enumerate(collection.documents):
            path = texts / f"{number:06}.txt"
            if not (path.exists() and path.read_bytes() == text.encode()):
                path.write_text(text, encoding="utf-8", newline="")
        with Index.open(place / "index", model) as index:
            began = time.perf_counter()
            index.add(texts)
            for mode in modes:
                gains = []
                with progress_bar(len(collection.queries), "queries") as bar:
                    for query in collection.queries:
                        hits = index.search(query.text, DEPTH, mode=mode, by="document")
                        gains.append(gain([int(hit.file.stem) for hit in hits], query.document))
                        bar.update(1)
                yield row(collection.name, mode, {FIGURE: gains}, time.perf_counter() - began)
                began = time.perf_counter()
    yield from (
        Row(collection.name, name, {FIGURE: value}, published=True) for name, value in PUBLISHED.items()
    )


def gain(ranking: Sequence[int], relevant: int) -> float:
    """nDCG@10 with one relevant document: 1 / log2(1 + rank), 0 beyond rank 10.

    >>> gain([7, 5, 3], 3), gain([7], 3)
    (0.5, 0.0)
    """
    best = [*ranking[:DEPTH]]
    return float(1 / np.log2(2 + best.index(relevant))) if relevant in best else 0.0
