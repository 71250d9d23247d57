"""Our models called as transformers' are: the same outputs and losses of the same padded batches."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from longspan.errors import InputError
from longspan.families.padded import ModelOutput, PaddedBatch
from longspan.families.task_model import TaskModel
from parity.peers import close, padded, pair, words

LENGTHS = (13, 1, 29)
FAMILIES = ("Bert", "Roberta", "ModernBert")


def batch(fill: int = 1) -> dict[str, Tensor]:
    """Three texts, padded to the longest."""
    texts = words(*LENGTHS)
    ones = padded([torch.ones(n, dtype=torch.long) for n in LENGTHS], 0)
    return {"input_ids": padded(texts, fill), "attention_mask": ones}


def labels_of(head: str, given: dict[str, Tensor]) -> dict[str, Tensor]:
    source = torch.Generator().manual_seed(3)
    mask = given["attention_mask"] == 0
    if head == "ForSequenceClassification":
        return {"labels": torch.tensor([1, 0, 1])}
    if head == "ForQuestionAnswering":
        return {"start_positions": torch.tensor([3, 0, 28]), "end_positions": torch.tensor([5, 0, 28])}
    if head == "ForMaskedLM":
        tokens = torch.randint(3, 83, mask.shape, generator=source)
        return {"labels": tokens.masked_fill(mask | (tokens % 3 > 0), -100)}
    tags = torch.randint(0, 2, mask.shape, generator=source)
    return {"labels": tags.masked_fill(mask, -100)}


def same(found: ModelOutput, wanted: Any, given: dict[str, Tensor]) -> None:
    """Everything that both have, but for what transformers gives at padding."""
    mask = given["attention_mask"] != 0
    shared = [name for name in found if name in wanted and name != "hidden_states"]
    assert shared
    for name in shared:
        ours, theirs = found[name], wanted[name]
        assert isinstance(ours, Tensor)
        by_token = ours.shape[:2] == mask.shape
        close(ours[mask] if by_token else ours, theirs[mask] if by_token else theirs, name)
        if by_token:
            assert not ours[~mask].any()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "head",
    ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"],
)
def test_outputs_and_losses_are_those_of_transformers(tmp_path: Path, family: str, head: str) -> None:
    theirs, ours = pair(tmp_path, family, head)
    given = batch()
    labels = {} if head == "Model" else labels_of(head, given)
    wanted = theirs(**given, **labels, output_hidden_states=True)
    if head == "ForQuestionAnswering":  # where transformers' softmax counts padding, too
        alone = {name: column[:1, :13] for name, column in given.items()}
        spans = {name: column[:1] for name, column in labels.items()}
        close(ours(**alone, **spans).loss, theirs(**alone, **spans).loss)
        wanted = theirs(**given, output_hidden_states=True)
        labels = {}
    found = ours(**given, **labels, output_hidden_states=True)
    same(found, wanted, given)
    assert len(found.hidden_states) == len(wanted.hidden_states)
    mask = given["attention_mask"] != 0
    for state, wish in zip(found.hidden_states, wanted.hidden_states, strict=True):
        close(state[mask], wish[mask], "hidden state")
    if labels:
        found.loss.backward()
        assert ours.backbone.word_embeddings.weight.grad is not None
    with torch.no_grad():
        read = ours(**given, output_hidden_states=True)
        same(read, wanted, given)
        for state, wish in zip(read.hidden_states, wanted.hidden_states, strict=True):
            close(state[mask], wish[mask], "hidden state while reading")


@pytest.mark.parametrize("family", FAMILIES)
def test_choices_are_scored_together(tmp_path: Path, family: str) -> None:
    theirs, ours = pair(tmp_path, family, "ForMultipleChoice")
    ids = torch.stack(words(*[7] * 6)).view(2, 3, 7)
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.tensor([2, 0])}
    found, wanted = ours(**given), theirs(**given)
    assert found.logits.shape == (2, 3)
    close(found.logits, wanted.logits)
    close(found.loss, wanted.loss)


def test_global_tokens_are_those_of_the_mask(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "Longformer", "Model")
    given = batch()
    marks = torch.zeros_like(given["input_ids"])
    marks[:, 0] = marks[2, 17] = 1
    wanted = theirs(**given, global_attention_mask=marks)
    mask = given["attention_mask"] != 0
    found = ours(**given, global_attention_mask=marks)
    close(found.last_hidden_state[mask], wanted.last_hidden_state[mask])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TaskModel:
    return pair(tmp_path_factory.mktemp("model"), "ModernBert", "ForTokenClassification")[1]


def test_padding_before_a_text_changes_nothing_and_masks_may_be_of_any_type(model: TaskModel) -> None:
    given = batch()
    right = model(**given)
    left = {name: column.roll(29 - 13, 1) for name, column in given.items()}
    found = model(input_ids=left["input_ids"][:1], attention_mask=left["attention_mask"][:1].float())
    close(found.logits[0, 16:], right.logits[0, :13])
    assert torch.equal(model(input_ids=given["input_ids"][2:], attention_mask=None).logits, right.logits[2:])


def test_an_output_is_an_object_a_dictionary_and_a_sequence(model: TaskModel) -> None:
    found = model(**batch())
    assert list(found) == ["logits"]
    assert found["logits"] is found.logits is found.to_tuple()[0]
    with pytest.raises(AttributeError, match="loss: the output has logits"):
        _ = found.loss
    with pytest.raises(AttributeError, match="output_hidden_states=True"):
        _ = found.hidden_states


@pytest.mark.parametrize(
    ("change", "words_of_error"),
    [
        ({"input_ids": [[1, 2]]}, "`input_ids` must be a tensor"),
        ({"input_ids": torch.ones(5, dtype=torch.long)}, "of shape \\(texts, tokens\\)"),
        ({"attention_mask": torch.ones(3, 4)}, "`attention_mask` must be of shape"),
        ({"attention_mask": torch.tensor([[1, 0, 1]]).expand(3, 3)}, "`attention_mask` must be of shape"),
        ({"attention_mask": torch.zeros(3, 29)}, "1 for a token of each text"),
        ({"attention_mask": torch.arange(29).expand(3, 29) % 2}, "one run of 1"),
        ({"labels": torch.ones(3, 2)}, "`labels` must be of shape"),
        ({"labels": [1]}, "`labels` must be a tensor"),
        ({"ids": torch.ones(3)}, "`input_ids` must be None beside packed ids"),
    ],
)
def test_wrong_batches_are_told(model: TaskModel, change: dict[str, Any], words_of_error: str) -> None:
    with pytest.raises(InputError, match=words_of_error):
        model(**(batch() | change))


def test_columns_become_places_in_their_text() -> None:
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]])
    taken = PaddedBatch.of(torch.ones(2, 4, dtype=torch.long), mask)
    assert taken.place(torch.tensor([3, 3])) == [1, None]
    assert taken.place(torch.tensor([1, -1])) == [None, None]
