"""Tiny models of transformers with weights that are nowhere trivial, and ours loaded from what they save."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from helpers import task_name
from longspan.checkpoints.load import load_model
from longspan.checkpoints.matching import is_tied, pieces
from longspan.families.registry import read_config
from longspan.families.task_model import TaskModel

TOLERANCE = 1e-5
"""The rule: no number is off by more than this times the largest expected one, or this if that is below 1."""

SIZES: dict[str, Any] = {
    "vocab_size": 83,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "sep_token_id": 2,
}
OF_FAMILY: dict[str, dict[str, Any]] = {
    "Longformer": {"attention_window": [8, 4], "max_position_embeddings": 202, "type_vocab_size": 1},
    "BigBird": {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 96},
    "Bert": {"max_position_embeddings": 96},
    "Roberta": {"max_position_embeddings": 98, "type_vocab_size": 1},
    "XLMRoberta": {"max_position_embeddings": 98, "type_vocab_size": 1},
    "Camembert": {"max_position_embeddings": 98, "type_vocab_size": 1},
    "Electra": {"max_position_embeddings": 96, "embedding_size": 10},
    "MPNet": {"max_position_embeddings": 202},
}
READ_ONLY: dict[str, dict[str, Any]] = {"DistilBert": {"max_position_embeddings": 96, "hidden_dim": 40}}
"""Families that we save as others."""
HEADS = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)


def peer(family: str, head: str, *, seed: int = 0, **changes: Any) -> Any:
    """A model of transformers with new weights, in evaluation mode."""
    sizes = {**SIZES, **(OF_FAMILY | READ_ONLY)[family], **changes}
    config = getattr(transformers, f"{family}Config")(**sizes)
    torch.manual_seed(seed)
    model = getattr(transformers, family + head)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def pair(folder: Path, family: str, head: str, **changes: Any) -> tuple[Any, TaskModel]:
    """The peer and our model of its files."""
    theirs = peer(family, head, **changes)
    theirs.save_pretrained(folder)
    loaded = load_model(folder)
    assert not loaded.report
    assert not loaded.notes
    return theirs, loaded.model


def words(*lengths: int, seed: int = 1) -> list[Tensor]:
    """Documents of random words, none of them a special token."""
    source = torch.Generator().manual_seed(seed)
    return [torch.randint(3, 83, (length,), generator=source) for length in lengths]


def padded(documents: Sequence[Tensor], fill: int) -> Tensor:
    """Documents as one batch, (B, L)."""
    return torch.nn.utils.rnn.pad_sequence(list(documents), batch_first=True, padding_value=fill)


def close(found: Tensor, expected: Tensor, name: str = "output") -> None:
    """The rule above."""
    assert found.shape == expected.shape, name
    if not expected.numel():
        return
    error = (found - expected).abs().max().item()
    assert error <= TOLERANCE * max(1.0, expected.abs().max().item()), f"{name}: {error:.1e}"


def same_gradients(theirs: Any, ours: TaskModel, given: Tensor, expected: Tensor) -> None:
    """A random sum of both outputs, differentiated to all parameters, which are compared by name."""
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(2))
    theirs.zero_grad()
    ours.zero_grad()
    (expected * weights).sum().backward()
    (given * weights).sum().backward()
    family, _ = read_config(theirs.config.to_dict())
    table = family.table(ours.architecture, "" if ours.architecture == "Model" else family.prefix)
    wanted = dict(theirs.named_parameters(remove_duplicate=False))
    for name, parameter in ours.named_parameters():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for key, rows in pieces(name, gradient, table, tied=is_tied(ours)):
            wish = wanted[key].grad
            close(rows, torch.zeros_like(rows) if wish is None else wish, key)


def compare(theirs: Any, ours: TaskModel, given: Tensor, expected: Tensor) -> None:
    """Outputs and gradients of all parameters."""
    close(given.detach(), expected.detach())
    same_gradients(theirs, ours, given, expected)


def output(answer: Any) -> Tensor:
    """What the head of transformers gives for the first row of a batch: (L, K) or (K,)."""
    for name in ("logits", "last_hidden_state"):
        if name in answer:
            return answer[name][0]  # type: ignore[no-any-return]
    return torch.stack([answer.start_logits[0], answer.end_logits[0]], 1)  # (L,), (L,) -> (L, 2)


def hidden(model: TaskModel) -> Any:
    """What gives the same as transformers' class: the body for the bare model, else all of it."""
    return model.backbone if task_name(model) == "encode" else model
