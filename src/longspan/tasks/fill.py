"""Fill: the words behind mask tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import InputError, bad
from longspan.models.task import TaskModel
from longspan.shapes import FloatArray
from longspan.tasks.documents import Document
from longspan.tasks.run import Step, by_document, hidden
from longspan.text.packing import Batch
from longspan.text.tokenizer import Encoding, Tokenizer

IGNORED = -100
"""The label of a token that is not to be guessed."""


def words(model: TaskModel, batch: Batch, rows: Tensor) -> Tensor:
    """The scores of all words at some rows of a batch: (rows, vocab). No others are computed."""
    found: Tensor = model.head(hidden(model, batch)[rows], batch.layout)
    return found


def loss(model: TaskModel, batch: Batch, labels: Tensor) -> Tensor:
    """Cross entropy at the rows whose label (N,) is not IGNORED."""
    if labels.shape != batch.ids.shape:
        raise bad("labels", f"of shape {tuple(batch.ids.shape)} like the ids", tuple(labels.shape))
    rows = (labels != IGNORED).nonzero().squeeze(1)
    return F.cross_entropy(words(model, batch, rows), labels[rows], reduction="sum") / max(len(rows), 1)


def encoded(tokenizer: Tokenizer, texts: Sequence[str], names: Sequence[str]) -> list[Encoding]:
    """Texts whose mask tokens are masks."""
    if tokenizer.mask is None:
        raise InputError("The tokenizer has no mask token. Load a masked language model.")
    encodings = tokenizer.promoting.encode_many(texts)
    for name, text, encoding in zip(names, texts, encodings, strict=True):
        if tokenizer.mask not in encoding.ids:
            mask = tokenizer.names["mask"]
            raise bad(name, f"a text with {mask}", text[:60], f"Write {mask} where a word is to be found.")
    return encodings


def guesses(tokenizer: Tokenizer, top_k: int) -> Step:
    """For every token of each piece (n, 2, top_k): the likeliest words of masks and their probabilities."""

    def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
        rows = torch.isin(batch.ids, batch.ids.new_tensor([tokenizer.mask])).nonzero().squeeze(1)
        likely = words(model, batch, rows).float().softmax(-1)
        likely = likely[:, : tokenizer.vocab_size]  # a model may have more rows than its tokenizer has words
        best = likely.topk(min(top_k, likely.shape[1]))
        # float32 holds ids exactly: no vocabulary is larger than 2**24.
        found = torch.stack([best.indices.float(), best.values], dim=1)
        table = found.new_zeros(len(batch.ids), *found.shape[1:])
        return by_document(table.index_copy(0, rows, found), batch)

    return step


def decode(tokenizer: Tokenizer, name: str, document: Document, found: Sequence[FloatArray]) -> list[Any]:
    """For each mask the likeliest words first; a single list where there is one mask."""
    ids = document.encoding.ids
    rows, table = document.joined(found)
    masks = np.flatnonzero(ids == tokenizer.mask)
    if not np.isin(masks, rows).all():
        raise bad(name, "read as far as its masks", "cut before", "Use overflow='window'.")
    alone = masks.size == 1
    guessed = []
    for mask in masks.tolist():
        words, likely = table[rows == mask][0]
        best = zip(words.astype(int).tolist(), likely.tolist(), strict=True)
        guessed.append([_guess(tokenizer, ids, mask, word, score, alone) for word, score in best])
    return guessed[0] if alone else guessed


def _guess(tokenizer: Tokenizer, ids: Any, mask: int, word: int, score: float, alone: bool) -> dict[str, Any]:
    filled = ids.copy()
    filled[mask] = word
    # With several masks the others would vanish with the special tokens.
    sequence = tokenizer.decode(filled[filled != tokenizer.pad], special=not alone)
    return {"score": score, "token": word, "token_str": tokenizer.decode([word]), "sequence": sequence}
