"""Batches to feed a model by hand: those that the verbs read, with labels as the losses take them."""

from typing import Any

import numpy as np
import pytest
import torch

from longspan.errors import InputError
from longspan.families.bert.model import BertConfig
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.stitched.model import StitchedConfig
from longspan.pipeline.packing import Batch
from longspan.reader import Reader
from longspan.tasks import answer, choose, classify, encode, fill, tag
from longspan.tasks.registry import build
from unit.tasks.tiny import CORPUS, FAMILIES, LONG, config, reader, summariser, tokenizer

TEXTS = list(CORPUS)
EVERY = pytest.mark.parametrize("family", FAMILIES)


def output(made: Reader, batch: Batch) -> torch.Tensor:
    found: torch.Tensor = made.model(batch.ids, batch.layout, batch.token_types)
    return found


@EVERY
def test_a_model_fed_by_hand_gives_what_the_verb_gives(family: str) -> None:
    made = reader(family, "classify", overflow="window")
    texts = [*TEXTS, LONG]
    found: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        for batch in made.prepare(texts, budget=70):
            found |= zip(batch.index, output(made, batch), strict=True)
    results = made.classify(texts, top_k=None)
    assert len(found) == sum(result.windows for result in results)
    for number, result in enumerate(results[:3]):
        scores = dict(zip(made.labels, found[number].softmax(-1).tolist(), strict=True))
        assert {one["label"]: one["score"] for one in result} == pytest.approx(scores, abs=1e-5)


def test_a_model_that_reads_block_by_block_is_fed_by_hand() -> None:
    sizes = {name: getattr(config("bert"), name) for name in vars(BertConfig()) if name != "radius"}
    made = Reader(build(StitchedConfig(**sizes, block=16), "encode").eval(), tokenizer("bert"))
    (batch,) = made.prepare([LONG])
    assert batch.layout.marked_rows.size > 1  # blocks
    with torch.no_grad():
        np.testing.assert_allclose(output(made, batch)[0].numpy(), made.encode(LONG), atol=1e-5)


def test_classes_are_given_by_name_or_number() -> None:
    made = reader("longformer", "classify", overflow="window", budget=80)
    batches = made.prepare([*TEXTS, LONG], labels=["LABEL_2", 0, 1, 2])
    labels: dict[int, int] = {}
    for batch in batches:
        assert isinstance(batch.labels, torch.Tensor)
        labels |= zip(batch.index, batch.labels.tolist(), strict=True)
    windows = made.classify(LONG)["windows"]
    assert windows > 1
    assert [labels[i] for i in range(len(labels))] == [2, 0, 1, *[2] * windows]  # windows have their text's
    made.problem = "multi"
    (several,) = made.prepare(TEXTS[:1], labels=[["LABEL_1", 2]])
    assert torch.equal(several.labels, torch.tensor([[0.0, 1.0, 1.0]]))  # type: ignore[arg-type]
    made.problem = "regression"
    (numbers,) = made.prepare(TEXTS[:1], labels=[[0.5, 1, 2]])
    assert torch.equal(numbers.labels, torch.tensor([[0.5, 1.0, 2.0]]))  # type: ignore[arg-type]


@EVERY
def test_ten_lines_fine_tune_a_classifier(family: str) -> None:
    torch.manual_seed(0)
    made = Reader(build(config(family), "classify", labels=3), tokenizer(family))
    optimizer = torch.optim.AdamW(made.model.parameters(), lr=0.01)
    losses = []
    made.model.eval()  # nothing dropped, to see the loss fall
    for _ in range(8):
        for batch in made.prepare(TEXTS, labels=[0, 1, 2]):
            assert isinstance(batch.labels, torch.Tensor)
            loss = classify.loss(output(made, batch), batch.labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert [result["label"] for result in made.classify(TEXTS)] == ["LABEL_0", "LABEL_1", "LABEL_2"]


def test_entities_become_labels_of_tokens() -> None:
    names = ["O", "B-PER", "I-PER", "LOC"]
    made = Reader(build(config("longformer"), "tag", labels=4), tokenizer("longformer"), labels=names)
    entities = [(0, 4, "PER"), {"start": 14, "end": 18, "entity": "LOC"}]
    (batch,) = made.prepare([TEXTS[1]], labels=[entities])
    assert isinstance(batch.labels, torch.Tensor)
    spans = made.tokenizer.encode(TEXTS[1]).offsets.tolist()
    for label, (start, end) in list(zip(batch.labels.tolist(), spans, strict=True))[1:-1]:
        place = names[label]
        person = "B-PER" if start == 0 else "I-PER"
        assert place == (person if start < 4 else "LOC" if start < 18 and end > 14 else "O")
    assert batch.labels[0] == batch.labels[-1] == -100
    tag.loss(output(made, batch), batch.labels).backward()


@EVERY
def test_answers_become_spans_of_the_window_that_holds_them(family: str) -> None:
    made = reader(family, "answer", overflow="window", limit=40)
    start = LONG.index("Rome")
    found: dict[int, Any] = {}
    for batch in made.prepare("Where?", LONG, labels=[(start, start + 4)]):
        assert isinstance(batch.labels, list)
        assert answer.loss(output(made, batch), batch.layout, batch.labels) >= 0
        ids = batch.ids.split(batch.layout.lengths.tolist())
        found |= zip(batch.index, zip(ids, batch.labels, strict=True), strict=True)
    held = [ids[first : last + 1] for ids, spans in found.values() for first, last in spans]
    assert held
    assert len(held) < len(found)
    for words in held:
        assert "".join(made.tokenizer.decode(words.numpy()).split()).lower() == "rome"
    squad = {"answer_start": [start], "text": ["Rome"]}
    (again,) = made.prepare([{"question": "Where?", "context": TEXTS[1]}], labels=[[]], limit=64)
    assert again.labels == [[]]
    assert made.prepare("Where?", LONG, labels=squad)[0].index


def test_choices_of_one_question_share_a_batch() -> None:
    made = reader("bert", "choose", budget=24)
    offered = [["x", "a much longer one"], ["p", "q", "r"]]
    batches = made.prepare(["a", "bridge"], offered, labels=[1, 2])
    assert len(batches) == 2
    for batch in batches:
        assert isinstance(batch.labels, tuple)
        assert sum(batch.labels[0]) == batch.layout.documents
        choose.loss(output(made, batch), *batch.labels).backward()
    assert sorted(batch.labels[0][0] for batch in batches if isinstance(batch.labels, tuple)) == [2, 3]


def test_words_behind_masks_are_labels_of_their_rows() -> None:
    made = reader("bert", "fill")
    (batch,) = made.prepare(["Anna lives in [MASK]."], labels=[[77]])
    assert isinstance(batch.labels, torch.Tensor)
    assert batch.labels[batch.ids == made.tokenizer.mask].tolist() == [77]
    assert int((batch.labels != -100).sum()) == 1
    fill.loss(made.model, batch, batch.labels).backward()


def test_texts_that_belong_together_stay_so() -> None:
    made = reader("bert", "encode", budget=30)
    partners = ["Rome", "London and more", "x"]
    for batch in made.prepare(["a b c", "river", "Thames in it"], labels=partners):
        assert isinstance(batch.labels, Batch)
        texts = batch.labels.ids.split(batch.labels.layout.lengths.tolist())
        for number, ids in zip(batch.index, texts, strict=True):
            assert ids.tolist() == made.tokenizer.encode(partners[number]).ids.tolist()
        encode.loss(output(made, batch), output(made, batch.labels)).backward()


def test_summaries_are_labels_with_a_layout_of_their_own() -> None:
    made, wanted = summariser(), ["Thames.", "Anna."]
    (batch,) = made.prepare(TEXTS[:2], labels=wanted)
    assert isinstance(batch.labels, torch.Tensor)
    assert batch.texts is not None
    lengths = batch.texts.lengths.tolist()
    for number, ids in zip(batch.index, batch.labels.split(lengths), strict=True):
        assert ids.tolist() == made.tokenizer.encode(wanted[number]).ids.tolist()
    assert isinstance(made.model, Seq2SeqLM)
    made.model.loss(batch.ids, batch.layout, batch.labels, batch.texts).backward()


@pytest.mark.parametrize(
    ("task", "inputs", "labels", "message"),
    [
        ("classify", [TEXTS], [0, 1], "`labels` must be one for each of the 3 inputs, but is '2 labels'"),
        ("classify", [TEXTS], 5, "`labels` must be a list, one for each input"),
        ("classify", [TEXTS[:1]], ["LABEL_7"], "`labels` must be one of LABEL_0, LABEL_1, LABEL_2"),
        ("classify", [TEXTS[:1]], [3], "`labels` must be at most 2, but is 3"),
        ("tag", [TEXTS[:1]], [[(900, 901, 1)]], "`labels` must be entities that hold a token"),
        ("answer", ["Who?", TEXTS[1]], [(900, 901)], "`labels` must be answers that stand in the context"),
        ("choose", ["a", ["b", "c"]], 2, "`labels` must be at most 1, but is 2"),
        ("fill", [["a [MASK]"]], [[1, 2]], "`labels` must be 1 token ids, one for each mask"),
    ],
)
def test_labels_that_do_not_fit_are_refused(task: str, inputs: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reader("bert", task).prepare(*inputs, labels=labels)


def test_a_summary_that_is_too_long_is_refused() -> None:
    with pytest.raises(InputError, match=r"`labels\[0\]` must be from 1 to 24 tokens long"):
        summariser().prepare(TEXTS[:1], labels=[LONG])
