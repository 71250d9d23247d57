"""What users of transformers expect of any model: where it is, how large, and other words."""

from dataclasses import replace
from typing import cast

import torch
from torch import nn

from longspan.errors import bad, whole
from longspan.families.config import LARGEST, EncoderConfig


class Habits(nn.Module):
    """Methods of transformers' models that mean the same here."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        return next(self.parameters()).dtype

    def num_parameters(self, only_trainable: bool = False, exclude_embeddings: bool = False) -> int:
        """How many weights there are; tied ones count once."""
        tables = {id(part.weight) for part in self.modules() if isinstance(part, nn.Embedding)}
        return sum(
            parameter.numel()
            for parameter in self.parameters()
            if (parameter.requires_grad or not only_trainable)
            and not (exclude_embeddings and id(parameter) in tables)
        )


def resized(table: nn.Embedding, rows: int) -> nn.Embedding:
    """The table with so many rows: new ones are the mean of the old, which favors no word."""
    old = table.weight.data
    grown = old.mean(0, keepdim=True).expand(max(rows - len(old), 0), -1)
    new = nn.Embedding(1, 1)
    new.num_embeddings, new.embedding_dim = rows, old.shape[1]
    new.weight = nn.Parameter(torch.cat([old[:rows], grown]), requires_grad=table.weight.requires_grad)
    return new


def resized_decoder(decoder: nn.Linear, words: nn.Embedding, tied: bool) -> None:
    """A head that scores words, fitted to another number of them; `tied` to the embeddings, or by itself."""
    rows = words.num_embeddings
    if tied:
        decoder.weight = cast(nn.Parameter, words.weight)
    else:
        stand_in = nn.Embedding.from_pretrained(decoder.weight.data, freeze=not decoder.weight.requires_grad)
        decoder.weight = cast(nn.Parameter, resized(stand_in, rows).weight)
    if decoder.bias is not None:
        bias = decoder.bias.data
        grown = bias.new_zeros(max(rows - len(bias), 0))
        decoder.bias = nn.Parameter(torch.cat([bias[:rows], grown]), requires_grad=decoder.bias.requires_grad)
    decoder.out_features = rows


def resized_config(config: EncoderConfig, rows: int, multiple: int | None) -> EncoderConfig:
    """The config with a vocabulary of so many words, rounded up to a multiple."""
    rows = whole("new_num_tokens", rows, 1, most=LARGEST)
    if multiple is not None:
        rows = -(-rows // whole("pad_to_multiple_of", multiple, 1)) * multiple
    if config.pad_id >= rows:
        raise bad("new_num_tokens", f"above the padding token's number, {config.pad_id}", rows)
    return replace(config, vocab_size=rows)
