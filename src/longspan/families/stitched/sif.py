"""SIF weights: the rarer a word, the more it counts in a text's vector (Arora, Liang and Ma, 2017)."""

from collections.abc import Iterable, Sequence
from importlib.resources import files

import numpy as np
import torch
from safetensors.torch import load
from torch import Tensor

from longspan.text.tokenizer import Tokenizer

HALF = 0.01
"""A word that is so frequent counts half, and so do special tokens."""
UNSEEN = 0.1
"""How often a word counts as seen that never was."""
SHIPPED = "sif-uncased.safetensors"


def shipped() -> Tensor:
    """The SIF weights of BERT's uncased words (30522,), counted in the documentation of Python and Linux and
    in meetings; benchmarks/sif.py makes the file."""
    data = files(__package__).joinpath(SHIPPED).read_bytes()
    return load(data)["salience"].float()


def counted(tokenizer: Tokenizer, corpora: Sequence[Iterable[str]]) -> Tensor:
    """The SIF weight of each word (vocab,) by its mean frequency in collections of texts."""
    frequencies = []
    for texts in corpora:
        counts = np.full(tokenizer.vocab_size, UNSEEN)
        for encoding in map(tokenizer.encode, texts):
            counts += np.bincount(encoding.ids[encoding.source >= 0], minlength=len(counts))
        frequencies.append(counts / counts.sum())
    mean = np.mean(frequencies, axis=0)
    weights = HALF / (HALF + mean)
    weights[list(tokenizer.special_ids)] = 0.5
    return torch.from_numpy(weights)
