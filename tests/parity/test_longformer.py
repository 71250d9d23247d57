"""Longformer computes what transformers computes: outputs and gradients, any head, length and globals."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from longspan.layout import Layout
from parity.peers import HEADS, close, compare, hidden, output, padded, pair, words

GLOBALS: dict[str, Callable[[int], list[int]]] = {
    "none": lambda n: [],
    "one": lambda n: [0],
    "many": lambda n: list(range(0, n, 3)),
    "all": lambda n: list(range(n)),
}


def flags(n: int, marked: list[int]) -> Tensor:
    return torch.zeros(1, n, dtype=torch.long).index_fill_(1, torch.tensor(marked, dtype=torch.long), 1)


@pytest.mark.parametrize("chosen", GLOBALS)
@pytest.mark.parametrize("n", [1, 2, 13, 64, 149])
def test_the_body_agrees_at_any_length_with_any_global_tokens(tmp_path: Path, n: int, chosen: str) -> None:
    theirs, ours = pair(tmp_path, "Longformer", "Model")
    (ids,), marked = words(n), GLOBALS[chosen](n)
    whole = torch.ones(1, n, dtype=torch.long)
    expected = output(theirs(ids[None], attention_mask=whole, global_attention_mask=flags(n, marked)))
    compare(theirs, ours, ours.backbone(ids, Layout.packed([n], marked=[marked])), expected)


@pytest.mark.parametrize("marked", [[], [0], [0, 5, 30]], ids=str)
@pytest.mark.parametrize("head", HEADS[:-1])
def test_every_head_agrees(tmp_path: Path, head: str, marked: list[int]) -> None:
    theirs, ours = pair(tmp_path, "Longformer", head)
    (ids,) = words(37)
    whole = torch.ones(1, 37, dtype=torch.long)
    expected = output(theirs(ids[None], attention_mask=whole, global_attention_mask=flags(37, marked)))
    given = hidden(ours)(ids, Layout.packed([37], marked=[marked]))
    compare(theirs, ours, given[0] if expected.dim() == 1 else given, expected)


def test_the_choice_between_documents_agrees(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "Longformer", "ForMultipleChoice")
    lengths, marked = (31, 17, 8), [[0, 1], [], [0]]
    ids = words(*lengths)
    batch = padded(ids, 1)[None]  # (choices, L) -> (1, choices, L)
    chosen = torch.cat([flags(31, rows) for rows in marked])[None]
    expected = theirs(batch, attention_mask=(batch != 1).long(), global_attention_mask=chosen).logits[0]
    compare(theirs, ours, ours(torch.cat(ids), Layout.packed(lengths, marked=marked))[:, 0], expected)


def test_documents_packed_end_to_end_agree_with_a_padded_batch(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "Longformer", "ForMaskedLM")
    lengths, marked = (19, 50, 7), [[0, 18], [], [3]]
    ids = words(*lengths)
    batch, real = padded(ids, 1), padded([torch.ones(n, dtype=torch.bool) for n in lengths], 0)
    chosen = torch.cat([flags(50, rows) for rows in marked])
    expected = theirs(batch, attention_mask=real.long(), global_attention_mask=chosen).logits[real]
    compare(theirs, ours, ours(torch.cat(ids), Layout.packed(lengths, marked=marked)), expected)


def test_our_padded_rows_agree_with_a_padded_batch(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "Longformer", "ForTokenClassification")
    lengths, marked = (19, 50, 7), [[0, 18], [], [3]]
    batch, real = padded(words(*lengths), 1), padded([torch.ones(n, dtype=torch.bool) for n in lengths], 0)
    chosen = torch.cat([flags(50, rows) for rows in marked])
    expected = theirs(batch, attention_mask=real.long(), global_attention_mask=chosen).logits[real]
    given = ours(batch.flatten(), Layout.padded(real, marked=chosen.bool()))
    compare(theirs, ours, given[real.flatten()], expected)


def test_without_gradients_the_same_is_computed(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "Longformer", "Model")
    (ids,), marked = words(149), [0, 77]
    with torch.no_grad():
        expected = output(theirs(ids[None], global_attention_mask=flags(149, marked)))
        close(ours.backbone(ids, Layout.packed([149], marked=[marked])), expected)


@pytest.mark.parametrize("act", ["relu", "gelu_new"])
def test_the_head_of_masked_words_keeps_its_gelu_whatever_the_body_has(tmp_path: Path, act: str) -> None:
    theirs, ours = pair(tmp_path, "Longformer", "ForMaskedLM", hidden_act=act)
    (ids,) = words(21)
    expected = output(theirs(ids[None], attention_mask=torch.ones(1, 21, dtype=torch.long)))
    compare(theirs, ours, ours(ids, Layout.packed([21])), expected)
