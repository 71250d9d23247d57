"""Languages that need no model: the next word's probabilities are drawn anew behind every text."""

import itertools
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from longspan.generation.config import GenerationConfig
from longspan.generation.logits_process import LogitsProcessor
from longspan.generation.search import BeamSearch, Hypothesis

START, END = 0, 1


def scores(text: tuple[int, ...], *, seed: int, vocab: int, ending: float = 0.0) -> Tensor:
    """Log-probabilities (vocab,) behind a text; `ending` makes the end likelier."""
    draw = torch.Generator().manual_seed(hash((seed, text)) % 2**31)
    raw = 3 * torch.randn(vocab, generator=draw)
    raw[END] += ending
    return raw.log_softmax(-1)


def steps(search: BeamSearch, *, seed: int, vocab: int, ending: float = 0.0) -> Iterator[bool]:
    """Let a search advance until nothing is left to write; whether it goes on, after each step."""
    more = True
    while more:
        each = [
            scores(tuple(text[1:].tolist()), seed=seed, vocab=vocab, ending=ending) for text in search.tokens
        ]
        part = LogitsProcessor(search.config, [END])(torch.stack(each), search.tokens)
        more = search.advance(part, np.zeros(len(search.tokens), np.int64))
        yield more


def best(options: GenerationConfig, *, seed: int, vocab: int) -> list[Hypothesis]:
    """What a beam search finds."""
    search = BeamSearch(options, START, [END])
    for _ in steps(search, seed=seed, vocab=vocab):
        pass
    return search.results()


def texts(longest: int, *, vocab: int) -> Iterator[tuple[int, ...]]:
    """All that can be written: texts with the end behind their last word, or as long as they may be."""
    words = [word for word in range(vocab) if word != END]
    for size in range(longest):
        yield from ((*text, END) for text in itertools.product(words, repeat=size))
    yield from itertools.product(words, repeat=longest)


def likelihood(text: tuple[int, ...], *, seed: int, vocab: int) -> float:
    """The logarithm of a text's probability."""
    return sum(float(scores(text[:n], seed=seed, vocab=vocab)[word].double()) for n, word in enumerate(text))
