"""Tiny models of transformers with weights that are nowhere trivial, and ours loaded from what they save."""

import json
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
from longspan.layout import Layout
from longspan.pipeline.packing import Batch
from longspan.tasks import answer, choose, classify, fill, tag

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
    "NomicBert": {"max_position_embeddings": 96},
    "Gte": {"max_position_embeddings": 96},
    "JinaEmbeddingsV3": {"max_position_embeddings": 96, "type_vocab_size": 1},
    "Gemma3Text": {
        "max_position_embeddings": 96,
        "num_key_value_heads": 1,
        "head_dim": 10,
        "query_pre_attn_scalar": 7,
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention"],
        "use_bidirectional_attention": True,
    },
    "EuroBert": {"max_position_embeddings": 96, "pad_token_id": 0},
    "ModernBert": {"max_position_embeddings": 96, "local_attention": 8, "pad_token_id": 0},
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


def rewritten(folder: Path, *gone: str, **fields: Any) -> Path:
    """The folder, whose config.json has other fields, and some no more."""
    raw = json.loads((folder / "config.json").read_text())
    kept = {name: value for name, value in raw.items() if name not in gone} | fields
    (folder / "config.json").write_text(json.dumps(kept))
    return folder


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
    wanted = dict(theirs.named_parameters(remove_duplicate=False))
    family = family.as_stored(wanted)
    table = family.table(ours.architecture, "" if ours.architecture == "Model" else family.prefix)
    for name, parameter in ours.named_parameters():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for key, rows in pieces(ours, name, gradient, table, tied=is_tied(ours)):
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


def losses(theirs: Any, ours: TaskModel) -> tuple[Tensor, Tensor]:
    """Theirs and ours, of two documents with labels for their class."""
    lengths, ids = (12, 9), words(12, 9)
    layout, batch = Layout.packed(lengths), padded(ids, 0)
    real = padded([torch.ones(n, dtype=torch.long) for n in lengths], 0)
    rows, name = ours(torch.cat(ids), layout), task_name(ours)
    if name == "classify":
        labels = torch.tensor([2, 0])
        return theirs(batch, attention_mask=real, labels=labels).loss, classify.loss(rows, labels)
    if name == "choose":
        right = torch.tensor([1])
        expected = theirs(batch[None], attention_mask=real[None], labels=right).loss
        return expected, choose.loss(rows, [2], right)
    if name == "answer":
        first, last = torch.tensor([3, 0]), torch.tensor([5, 8])
        expected = theirs(batch[:, :9], start_positions=first, end_positions=last).loss
        short = Layout.packed([9, 9])
        rows = ours(torch.cat([part[:9] for part in ids]), short)
        return expected, answer.loss(rows, short, [[(3, 5)], [(0, 8)]])
    labels = padded([torch.where(part % 3 == 0, part % 2, -100) for part in ids], -100)
    expected, flat = theirs(batch, attention_mask=real, labels=labels).loss, labels[real.bool()]
    if name == "tag":
        return expected, tag.loss(rows, flat)
    return expected, fill.loss(ours, Batch(torch.cat(ids), layout, None, (0, 1)), flat)


def same_loss(theirs: Any, ours: TaskModel, expected: Tensor, given: Tensor) -> None:
    """Both losses, and what they say to the words."""
    close(given.detach(), expected.detach(), "loss")
    theirs.zero_grad()
    ours.zero_grad()
    given.backward()
    expected.backward()
    found = ours.backbone.word_embeddings.weight.grad
    assert found is not None
    close(found, theirs.get_input_embeddings().weight.grad, "gradient of the words")
