"""BART and BigBird-Pegasus write the very tokens that transformers writes; of LED see test_generation."""

from pathlib import Path
from typing import Any

import pytest
import torch

from longspan.generation.config import GenerationConfig
from longspan.generation.generate import generate
from parity.writers import call, documents, layout_of, pair

LENGTHS = (45, 20, 3)
SETTINGS: list[dict[str, Any]] = [
    {"max_new_tokens": 13, "no_repeat_ngram_size": 2},
    {
        "num_beams": 4,
        "max_new_tokens": 13,
        "length_penalty": 2.0,
        "no_repeat_ngram_size": 3,
        "min_new_tokens": 5,
    },
    {
        "num_beams": 3,
        "max_new_tokens": 9,
        "early_stopping": True,
        "forced_eos_token_id": 1,
        "num_return_sequences": 2,
    },
]
NAMES = {
    "num_beams": "num_beams",
    "max_new_tokens": "max_new_tokens",
    "min_new_tokens": "min_new_tokens",
    "no_repeat_ngram_size": "no_repeat_ngram_size",
    "forced_eos_token_id": "forced_eos_token_id",
    "num_return_sequences": "num_return_sequences",
}


@pytest.fixture(autouse=True)
def engine() -> None:
    """Scores are compared with both kernels elsewhere."""


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("variant", ["bart", "pegasus"])
def test_the_same_tokens_are_written(tmp_path: Path, variant: str, settings: dict[str, Any]) -> None:
    theirs, ours = pair(tmp_path, variant, spread=0.7)
    theirs.generation_config.forced_eos_token_id = None  # of BART; ours does what it is asked to
    theirs, ours, end = theirs.double(), ours.double(), theirs.config.eos_token_id
    settings = settings | ({"forced_eos_token_id": end} if "forced_eos_token_id" in settings else {})
    ids = documents(*LENGTHS, end=end)
    asked = {NAMES.get(name, name): value for name, value in settings.items()}
    wanted = []
    for document in ids:
        call(theirs, [ids[0]], decoder_input_ids=ids[0][None, :1])  # back to blocks
        found = theirs.generate(document[None], do_sample=False, **asked)[:, 1:].tolist()
        wanted.append([tuple(text[: text.index(end) + 1] if end in text else text) for text in found])
    written = generate(ours, torch.cat(ids), layout_of(ids), GenerationConfig(**settings))
    assert [[text.tokens for text in texts] for texts in written] == wanted
    assert len({text for texts in wanted for text in texts}) > 1
