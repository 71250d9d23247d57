"""A cross-encoder as a re-ranker: it reads the query and a passage together."""

from longspan.pipeline.inputs import TextPair
from longspan.reader import Reader
from longspan.search.results import Rerank


def cross_encoder(reader: Reader) -> Rerank:
    """Score pairs by a classifier: its only label, or the last of them; what does not fit is cut off."""

    def scores(pairs: list[tuple[str, str]]) -> list[float]:
        texts = [TextPair(text=query, text_pair=passage) for query, passage in pairs]
        found = reader.classify(texts, top_k=None, overflow="truncate", progress=False)
        return [each["score"] for own in found for each in own if each["label"] == reader.labels[-1]]

    return scores
