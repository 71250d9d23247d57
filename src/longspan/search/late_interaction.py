"""Models of late interaction in an index: the vector of a passage is the mean of those of its tokens."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from longspan.families.task_model import TaskModel
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, head_output
from longspan.search.ways import Prepared, QueryVectors, Way
from longspan.tasks.encode import normalized
from longspan.tasks.late_interaction import (
    LATE_INTERACTION,
    Settings,
    as_documents,
    as_queries,
    read_queries,
    skipped_ids,
)

if TYPE_CHECKING:
    from longspan.reader import Reader

TASK = LATE_INTERACTION.name


def by_tokens(reader: "Reader") -> Way:
    """How such a model reads: its prefixes and its skip list are those of its folder."""
    settings = Settings.of(reader.config)
    skipped = skipped_ids(reader.tokenizer, settings)
    ids = torch.from_numpy(skipped)

    def weights(model: TaskModel, batch: Batch) -> Tensor:
        return (~torch.isin(batch.ids, ids.to(batch.ids.device))).float()

    return Way(
        rules=LATE_INTERACTION,
        documents=lambda texts: Prepared(*as_documents(reader.tokenizer, texts, settings)[:2]),
        query=lambda query: _query(reader, query),
        rows=head_output,
        weights=weights,
        pooling="sif",  # which is by these weights
        skipped=skipped,
        settings=str(settings),
        needs_tokens=True,
    )


def _query(reader: "Reader", query: str) -> QueryVectors:
    """The vectors of all tokens of a query, also of those that it is filled up with, and their mean."""
    settings = Settings.of(reader.config)
    options = reader.options.but(progress=False, overflow="window", whole=True)
    pipeline = Pipeline(reader.model, reader.tokenizer, options)
    asked = as_queries(reader.tokenizer, [query], settings)
    ((document, tokens),) = read_queries(pipeline, ["query"], asked, settings, options)
    encoding = document.encoding
    own = (encoding.source == 0) & (encoding.offsets[:, 0] >= asked.before)
    offsets = np.where(own[:, None], encoding.offsets - asked.before, -1)
    return QueryVectors(
        vector=normalized(tokens.mean(0)).astype(np.float32),
        tokens=tokens,
        parts=tokens,
        offsets=offsets,
        tokenizer=reader.tokenizer,
        skipped=skipped_ids(reader.tokenizer, settings),
        own=True,
    )
