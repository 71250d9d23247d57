"""A text that goes on for ever: one token after another, each as soon as it is there."""

from collections.abc import Iterator
from dataclasses import fields
from itertools import count
from typing import Protocol

import torch
from torch import Tensor

from longspan.errors import bad
from longspan.generation.config import SAMPLING, GenerationConfig
from longspan.generation.logits_process import warp_logits

READ = ("max_new_tokens", "do_sample", *SAMPLING)
"""Options that streams follow; the others depend on all that was written, which nobody keeps."""


class Streamed(Protocol):
    """A text that is read piece by piece."""

    def read(self, ids: Tensor) -> Tensor:
        """The logits (n, vocab) of what follows each of the next tokens (n,)."""
        ...


def stream(
    text: Streamed,
    prompt: Tensor,
    config: GenerationConfig | None = None,
    *,
    generator: torch.Generator | None = None,
) -> Iterator[int]:
    """The tokens that follow a prompt (n,), each when it is asked for; without `max_new_tokens` for ever.

    What is sampled depends on `generator` alone.
    """
    config = config or GenerationConfig()
    for option in fields(config):
        if option.name not in READ and getattr(config, option.name) != option.default:
            repair = f"Streams follow {', '.join(READ)}."
            raise bad(option.name, "left as it is", getattr(config, option.name), repair)
    if not len(prompt):
        raise bad("prompt", "at least one token long", 0)
    return _streamed(text, prompt, config, generator)


def _streamed(
    text: Streamed, prompt: Tensor, config: GenerationConfig, generator: torch.Generator | None
) -> Iterator[int]:
    tokens = prompt
    for _ in count() if config.max_new_tokens is None else range(config.max_new_tokens):
        scores = text.read(tokens)[-1:].float().cpu()
        if not bool(scores.isfinite().all()):
            repair = "The weights hold NaN or infinity."
            raise bad("scores", "numbers", float(scores.sum()), repair)
        token = scores.argmax(1)
        if config.do_sample:
            chances = warp_logits(scores, config).softmax(-1)
            token = torch.multinomial(chances, 1, generator=generator)[0]
        yield int(token)
        tokens = token.to(prompt.device)
