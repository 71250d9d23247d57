"""transformers' own Trainer drives our models, fed by our collator."""

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LongformerForSequenceClassification, Trainer, TrainingArguments

from longspan.data import TrainerModel, collator
from longspan.errors import InputError
from unit.tasks.tiny import reader, summariser

PLACES, WORDS = ("Rome", "London"), ("river", "bridge", "company")
EXAMPLES: list[dict[str, object]] = [
    {"text": f"{place} {word} {'so on ' * n}", "label": int(place == "Rome")}
    for n in (1, 4)
    for place in PLACES
    for word in WORDS
]


def arguments(folder: Path) -> Any:
    pytest.importorskip("accelerate")
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=30,
        per_device_train_batch_size=4,
        learning_rate=3e-3,
        remove_unused_columns=False,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_trains_our_model(tmp_path: Path) -> None:
    one = reader("longformer", "classify", labels=2)
    one.model = deepcopy(one.model)
    trainer = Trainer(
        TrainerModel(one), arguments(tmp_path), data_collator=collator(one), train_dataset=EXAMPLES
    )
    trainer.train()
    found = one.classify([str(example["text"]) for example in EXAMPLES])
    assert [result["label"] for result in found] == [f"LABEL_{example['label']}" for example in EXAMPLES]


def test_a_batch_is_that_of_transformers_model(tmp_path: Path) -> None:
    """The same loss by transformers' model with the same columns."""
    one = reader("longformer", "classify", labels=2)
    one.save(tmp_path)
    theirs = LongformerForSequenceClassification.from_pretrained(tmp_path).eval()
    batch = collator(one)(EXAMPLES)
    assert batch["labels"].tolist() == [example["label"] for example in EXAMPLES]
    with torch.no_grad():
        ours, other = one.model.eval()(**batch).loss, theirs(**batch).loss
    torch.testing.assert_close(ours, other, rtol=1e-5, atol=1e-6)


def test_tags_answers_and_texts_without_labels() -> None:
    tagger = reader("longformer", "tag", labels=2)
    one: dict[str, object] = {"text": "Anna lives in Rome.", "label": [(14, 18, "LABEL_1")]}
    tagged = collator(tagger)([one, {"text": "A", "label": []}])
    assert tagged["labels"].shape == tagged["input_ids"].shape
    assert int((tagged["labels"] == 1).sum()) > 0
    answering = reader("longformer", "answer")
    asked: dict[str, object] = {"question": "Where?", "context": "Anna lives in Rome."}
    found = collator(answering)([asked | {"label": [(14, 18)]}, asked | {"label": []}])
    assert found["start_positions"].tolist()[1] == 0 < found["start_positions"].tolist()[0]
    assert bool(answering.model(**found).loss.isfinite())
    plain = collator(tagger)([{"text": "Anna"}])
    assert set(plain) == {"input_ids", "attention_mask", "global_attention_mask"}


def test_words_behind_masks() -> None:
    one = reader("longformer", "fill")
    batch = collator(one)(
        [{"text": "A <mask> and more <mask>", "label": [40, 41]}, {"text": "<mask>", "label": [7]}]
    )
    assert batch["labels"][batch["input_ids"] == one.tokenizer.mask].tolist() == [40, 41, 7]
    assert bool(one.model(**batch).loss.isfinite())


def test_choices_have_the_loss_of_a_packed_batch() -> None:
    one = reader("longformer", "choose")
    prompts, right = ["Anna lives in", "The river", "A"], [1, 0, 1]
    choices = [["Rome", "the old bridge near London"], ["Thames flows through London", "b"], ["c", "d e f"]]
    rows = [
        {"prompt": prompt, "choices": offered, "label": best}
        for prompt, offered, best in zip(prompts, choices, right, strict=True)
    ]
    batch = collator(one)(rows)
    assert batch["input_ids"].shape[:2] == (3, 2)
    assert batch["labels"].tolist() == right
    found: list[Any] = one.choose(prompts, choices)
    expected = -sum(math.log(result["scores"][best]) for result, best in zip(found, right, strict=True)) / 3
    assert one.model.eval()(**batch).loss.item() == pytest.approx(expected, rel=1e-4)


def test_mistakes_are_told() -> None:
    one = reader("longformer", "classify", labels=2)
    with pytest.raises(InputError, match="`task` must be classify, as the Reader has it"):
        collator(one, "tag")
    with pytest.raises(InputError, match="`text` is missing"):
        collator(one)([{"content": "Rome"}])
    long = reader("longformer", "classify", labels=2, overflow="window")
    with pytest.raises(InputError, match="`overflow` must be 'error' or 'truncate' here"):
        collator(long)([{"text": "Rome " * 100, "label": 0}])
    for other in (reader("longformer", "encode"), summariser()):
        with pytest.raises(
            InputError, match="`task` must be one of fill, classify, tag, answer, choose, where"
        ):
            collator(other)([{"text": "Rome", "label": "London"}])
        assert set(collator(other)([{"text": "Rome"}])) > {"input_ids", "attention_mask"}
    choosing: list[dict[str, object]] = [{"prompt": "A", "choices": ["b"] * n} for n in (2, 3)]
    with pytest.raises(InputError, match="`choices` must be equally many in all examples of a batch"):
        collator(reader("longformer", "choose"))(choosing)
