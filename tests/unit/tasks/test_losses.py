"""Losses and their gradients are those of transformers, on tiny random models of every head."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor

from helpers import task_name
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.pipeline.packing import Batch, pack
from longspan.pipeline.run import head_output
from longspan.tasks import answer, choose, classify, fill, tag

VOCABULARY, SEPARATOR, LABELS = 97, 2, 5
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 130,
    "initializer_range": 0.3,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "sep_token_id": SEPARATOR,
    "eos_token_id": SEPARATOR,
    "num_labels": LABELS,
}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "longformer": ("Longformer", {"attention_window": 8, "type_vocab_size": 1}),
    # Documents of up to 56 tokens see everything, padded or not.
    "bigbird": ("BigBird", {"block_size": 8, "num_random_blocks": 1, "type_vocab_size": 2}),
    "bert": ("Bert", {"type_vocab_size": 2}),
}
pytestmark = pytest.mark.parametrize("family", FAMILIES)


class Twins:
    """The same weights in transformers and in Longspan, neither of them dropping anything."""

    def __init__(self, family: str, head: str, folder: Path, **fields: Any) -> None:
        name, own = FAMILIES[family]
        torch.manual_seed(3)
        config = getattr(transformers, f"{name}Config")(**{**SIZES, **own, **fields})
        self.theirs = getattr(transformers, f"{name}For{head}")(config).eval()
        self.theirs.save_pretrained(folder / "theirs")
        self.ours = load_model(folder / "theirs").model
        self.folder, self.family = folder, family

    def assert_equal(self, ours: Tensor, theirs: Tensor) -> None:
        """Losses and gradients of all weights, those by the names that transformers gives them."""
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
        ours.backward()
        theirs.backward()
        expected = {name: weight.grad for name, weight in self.theirs.named_parameters()}
        for weight in self.ours.parameters():
            weight.data = torch.zeros_like(weight) if weight.grad is None else weight.grad
        self.ours.spare = {}
        save_model(self.ours, self.folder / "gradients")
        compared = 0
        for name, found in load_file(self.folder / "gradients" / "model.safetensors").items():
            if expected.get(name) is not None:
                torch.testing.assert_close(found, expected[name], rtol=1e-5, atol=1e-5, msg=name)
                compared += 1
        assert compared > 20


def drawn(*lengths: int) -> list[list[int]]:
    source = torch.Generator().manual_seed(len(lengths))
    return [torch.randint(4, VOCABULARY, (n,), generator=source).tolist() for n in lengths]


def padded(documents: list[list[int]], padding: int = 1) -> dict[str, Tensor]:
    width = max(map(len, documents))
    ids = torch.tensor([document + [padding] * (width - len(document)) for document in documents])
    mask = torch.tensor([[1] * len(document) + [0] * (width - len(document)) for document in documents])
    return {"input_ids": ids, "attention_mask": mask}


def one_batch(documents: list[list[int]], **columns: Any) -> Batch:
    """The documents in the order in which they are given: they must not be sorted already."""
    (batch,) = pack(documents, **columns)
    return batch


def first_is_global(family: str, documents: list[list[int]]) -> list[list[int]] | None:
    return [[0] for _ in documents] if family == "longformer" else None


@pytest.mark.parametrize(
    ("problem", "theirs", "labels"),
    [
        ("single", "single_label_classification", [4, 0, 2]),
        ("multi", "multi_label_classification", [[1.0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 1, 1, 0, 0]]),
        ("regression", "regression", [[0.5, 1, -1, 2, 0], [1, 1, 1, 1, 1], [0, 3, 0, 0, -2]]),
    ],
)
def test_classify(family: str, problem: str, theirs: str, labels: list[Any], tmp_path: Path) -> None:
    twins = Twins(family, "SequenceClassification", tmp_path, problem_type=theirs)
    documents, right = drawn(29, 17, 5), torch.tensor(labels)
    batch = one_batch(documents, marked=first_is_global(family, documents))
    ours = classify.loss(head_output(twins.ours, batch), right, problem)
    twins.assert_equal(ours, twins.theirs(**padded(documents), labels=right).loss)


def test_fill(family: str, tmp_path: Path) -> None:
    twins = Twins(family, "MaskedLM", tmp_path)
    documents = drawn(31, 12, 7)
    wanted = [[word if i % 3 == 1 else -100 for i, word in enumerate(document)] for document in documents]
    labels = torch.tensor([label for row in wanted for label in row])
    expected = padded(wanted, -100)["input_ids"]
    ours = fill.loss(twins.ours, one_batch(documents), labels)
    twins.assert_equal(ours, twins.theirs(**padded(documents), labels=expected).loss)


def test_tag(family: str, tmp_path: Path) -> None:
    twins = Twins(family, "TokenClassification", tmp_path)
    documents = drawn(33, 14, 9)
    wanted = [[word % LABELS if i % 4 else -100 for i, word in enumerate(document)] for document in documents]
    labels = torch.tensor([label for row in wanted for label in row])
    ours = tag.loss(head_output(twins.ours, one_batch(documents)), labels)
    expected = padded(wanted, -100)["input_ids"]
    twins.assert_equal(ours, twins.theirs(**padded(documents), labels=expected).loss)


def questions(*lengths: int) -> tuple[list[list[int]], list[list[int]]]:
    """Documents of one length with questions of the given ones, framed as RoBERTa frames pairs, and types."""
    framed, types = [], []
    for words, asked in zip(drawn(*[24] * len(lengths)), lengths, strict=True):
        framed.append([0, *words[:asked], SEPARATOR, SEPARATOR, *words[asked:], SEPARATOR])
        types.append([0] * (asked + 2) + [1] * (len(framed[-1]) - asked - 2))
    return framed, types


def test_answer(family: str, tmp_path: Path) -> None:
    twins = Twins(family, "QuestionAnswering", tmp_path, num_labels=2)
    documents, types = questions(5, 3, 8)
    marked = [list(range(asked + 1)) for asked in (5, 3, 8)] if family == "longformer" else None
    kinds = None if family == "longformer" else types
    batch = one_batch(documents, marked=marked, token_types=kinds)
    spans = [(12, 15), (20, 20), (13, 99)]  # the last one ends beyond its document, which adds nothing
    ours = answer.loss(head_output(twins.ours, batch), batch.layout, [[span] for span in spans])
    starts, ends = torch.tensor(spans).T
    extra = {} if kinds is None else {"token_type_ids": torch.tensor(types)}
    theirs = twins.theirs(**padded(documents), **extra, start_positions=starts, end_positions=ends).loss
    twins.assert_equal(ours, theirs)


def test_choose(family: str, tmp_path: Path) -> None:
    twins = Twins(family, "MultipleChoice", tmp_path)
    documents, _ = questions(5, 3, 8, 5, 5, 2)
    marked = [range(document.index(SEPARATOR) + 2, len(document)) for document in documents]
    batch = one_batch(documents, marked=marked if family == "longformer" else None)
    right = torch.tensor([2, 0])
    ours = choose.loss(head_output(twins.ours, batch), [3, 3], right)
    given = {name: column.view(2, 3, -1) for name, column in padded(documents).items()}
    twins.assert_equal(ours, twins.theirs(**given, labels=right).loss)


def test_a_model_is_loaded_for_what_it_was_made_for(family: str, tmp_path: Path) -> None:
    for head, task in (("MultipleChoice", "choose"), ("QuestionAnswering", "answer")):
        model = Twins(family, head, tmp_path / task, num_labels=2).ours
        assert isinstance(model, TaskModel)
        assert task_name(model) == task


def test_documents_without_an_answer_add_no_loss(family: str, tmp_path: Path) -> None:
    layout = Layout.packed([4, 3])
    found = torch.randn(7, 2, generator=torch.Generator().manual_seed(1), requires_grad=True)
    alone = answer.loss(found[:4], Layout.packed([4]), [[(1, 2)]])
    torch.testing.assert_close(answer.loss(found, layout, [[(1, 2)], []]), alone)
    nothing = answer.loss(found, layout, [[], []])
    (gradient,) = torch.autograd.grad(nothing, found)
    assert nothing == 0
    assert not gradient.any()
