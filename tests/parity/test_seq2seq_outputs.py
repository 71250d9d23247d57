"""LED, BART and BigBird-Pegasus from their files compute what transformers computes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from parity.peers import close, compare, padded, same_gradients
from parity.writers import CLASSES, VARIANTS, call, documents, expected, given, layout_of, pair

EVERY = pytest.mark.parametrize("variant", VARIANTS)
LENGTHS, WRITTEN = (45, 20, 3), (7, 1, 11)
"""Of the first document BigBird-Pegasus sees blocks, of the others all."""


def inputs(theirs: Any) -> tuple[list[Tensor], list[Tensor]]:
    ids = documents(*LENGTHS, end=theirs.config.eos_token_id)
    return ids, documents(*WRITTEN, end=7, seed=2)


def is_led(theirs: Any) -> bool:
    return bool(theirs.config.model_type == "led")


@pytest.mark.parametrize(("variant", "head"), CLASSES)
def test_outputs_and_gradients_are_those_of_every_class(tmp_path: Path, variant: str, head: str) -> None:
    theirs, ours = pair(tmp_path, variant, head)
    ids, texts = inputs(theirs)
    wanted = expected(theirs, head, ids, texts)
    compare(theirs, ours, given(ours, ids, texts, marked=is_led(theirs)), wanted)


@EVERY
def test_in_float64_they_agree_far_more(tmp_path: Path, variant: str) -> None:
    theirs, ours = pair(tmp_path, variant)
    theirs, ours = theirs.double(), ours.double()
    ids, texts = inputs(theirs)
    wanted = expected(theirs, "ForConditionalGeneration", ids, texts)
    found = given(ours, ids, texts, marked=is_led(theirs))
    assert wanted.dtype == found.dtype == torch.float64
    most = 1e-6 if is_led(theirs) else 1e-9  # LED's softmax is a float32 one
    assert float((found - wanted).detach().abs().max() / wanted.detach().abs().max()) < most


@EVERY
def test_what_is_read_is_what_their_encoder_reads(tmp_path: Path, variant: str) -> None:
    theirs, ours = pair(tmp_path, variant, "Model")
    ids, texts = inputs(theirs)
    layout = layout_of(ids, marked=is_led(theirs))
    found = ours.backbone(torch.cat(ids), layout).split(list(LENGTHS))
    for one, document, text in zip(found, ids, texts, strict=True):
        close(one, call(theirs, [document], decoder_input_ids=text[None]).encoder_last_hidden_state[0])


@EVERY
def test_losses_and_gradients_of_a_padded_batch_are_theirs(tmp_path: Path, variant: str) -> None:
    theirs, ours = pair(tmp_path, variant)
    ids = documents(
        26, 20, 3, end=theirs.config.eos_token_id
    )  # short: else their batch is one by its longest
    texts = documents(*WRITTEN, end=theirs.config.eos_token_id, seed=2)
    texts[0][-1] = IGNORE_INDEX  # the last one is never looked up
    answer = call(theirs, ids, labels=padded(texts, IGNORE_INDEX))
    loss = ours.loss(
        torch.cat(ids), layout_of(ids, marked=is_led(theirs)), torch.cat(texts), layout_of(texts)
    )
    close(loss, answer.loss, "loss")
    same_gradients(theirs, ours, loss, answer.loss)


def test_a_short_document_changes_nothing_for_those_that_follow(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "pegasus")
    (long, short, _), (text, *_) = inputs(theirs)
    before = given(ours, [long], [text], marked=False)
    given(ours, [short], [text], marked=False)
    assert torch.equal(given(ours, [long], [text], marked=False), before)
    sparse = call(theirs, [long], decoder_input_ids=text[None]).logits[0]
    call(theirs, [short], decoder_input_ids=text[None])
    stuck = theirs(long[None], decoder_input_ids=text[None]).logits[0]  # where transformers is left
    close(before.detach(), sparse.detach())
    assert float((stuck - sparse).detach().abs().max()) > 0.01


@pytest.mark.parametrize("length", [29, 48, 90])
def test_in_training_the_same_blocks_are_drawn(tmp_path: Path, length: int) -> None:
    theirs, ours = pair(tmp_path, "pegasus")
    ids, texts = documents(length, end=1), documents(7, end=5, seed=2)
    sparse = expected(theirs, "ForConditionalGeneration", ids, texts).detach()
    theirs.train()
    ours.train()
    wanted = expected(theirs, "ForConditionalGeneration", ids, texts)
    compare(theirs, ours, given(ours, ids, texts, marked=False), wanted)
    assert float((wanted.detach() - sparse).abs().max()) > 0.1  # in evaluation none are
