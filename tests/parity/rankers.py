"""Tiny models of the families that re-rankers have, made on the spot."""

from typing import Any

import torch
import transformers

from longspan.text.tokenizer import Tokenizer
from parity.peers import SIZES, peer
from unit.tasks.tiny import VOCABULARY, tokenizer

FAMILIES = ("Bert", "XLMRoberta", "ModernBert")
MODERN: dict[str, Any] = {
    "max_position_embeddings": 96,
    "local_attention": 80,
    "global_attn_every_n_layers": 2,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "cls_token_id": 2,
    "sep_token_id": 3,
    "initializer_cutoff_factor": 2.0,
}


def encoder(family: str, head: str, **changes: Any) -> Any:
    """A model of transformers with new weights."""
    if family != "ModernBert":
        return peer(family, head, vocab_size=VOCABULARY, **changes)
    sizes = {name: value for name, value in SIZES.items() if "prob" not in name} | MODERN
    torch.manual_seed(3)
    config = transformers.ModernBertConfig(**sizes | {"vocab_size": VOCABULARY} | changes)
    model = getattr(transformers, family + head)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def words_of(family: str) -> Tokenizer:
    """The tokenizer of such a model."""
    return tokenizer("longformer" if family == "XLMRoberta" else "bert")
