"""A small corpus with masks, and models that fit it."""

import numpy as np

from longspan.corpus.examples import Examples
from longspan.corpus.store import Corpus
from longspan.families.task_model import TaskModel
from longspan.recipes.masking import Masking
from longspan.recipes.mlm import MaskedExamples, Vocabulary
from longspan.recipes.start import Start
from unit.corpus.small import tokenizer

SIZES = {"width": 16, "layers": 2, "heads": 2, "feed_forward": 32}


def model(preset: str = "longformer-base", **changes: object) -> TaskModel:
    """A tiny one, with the words of the small corpus."""
    return Start.from_preset(preset, tokenizer(), length=64, changes={**SIZES, **changes}).model


def masked(
    corpus: Corpus, masking: Masking | None = None, length: int = 40, **options: object
) -> MaskedExamples:
    """All documents of a corpus."""
    vocabulary = Vocabulary.of(tokenizer())
    examples = Examples(corpus, np.arange(len(corpus)), vocabulary.frame, length)
    return MaskedExamples(examples, vocabulary, masking or Masking(), **options)  # type: ignore[arg-type]
