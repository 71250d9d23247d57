"""Tiny models of transformers that have a decoder, with weights far from trivial, and ours of their files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from helpers import task_name
from longspan.checkpoints.load import load_model
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from parity.peers import padded

VOCAB = 61
SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 56,
    "dropout": 0.0,
}
LED = {
    "attention_window": [8, 16],
    "max_encoder_position_embeddings": 96,
    "max_decoder_position_embeddings": 64,
}
PEGASUS = {"max_position_embeddings": 96, "block_size": 4, "num_random_blocks": 1}
"""Documents of up to 28 tokens see everything."""
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "led": ("LED", LED),
    "bart": ("Bart", {"max_position_embeddings": 96}),
    "bart, scaled": ("Bart", {"max_position_embeddings": 96, "scale_embedding": True}),
    "pegasus": ("BigBirdPegasus", PEGASUS),
    "pegasus, biases": ("BigBirdPegasus", PEGASUS | {"use_bias": True, "scale_embedding": False}),
    "pegasus, full": ("BigBirdPegasus", PEGASUS | {"attention_type": "original_full"}),
}
HEADS = ("Model", "ForConditionalGeneration", "ForSequenceClassification", "ForQuestionAnswering")
CLASSES = [
    (variant, head)
    for variant, (family, _) in VARIANTS.items()
    for head in HEADS
    if hasattr(transformers, family + head)
]
"""Of LED there is no class for classification any more."""


def peer(variant: str, head: str = "ForConditionalGeneration", *, spread: float = 0.2, **changes: Any) -> Any:
    """A model of transformers with new weights, in evaluation mode."""
    family, fields = VARIANTS[variant]
    config = getattr(transformers, f"{family}Config")(**SIZES | fields | changes)
    torch.manual_seed(0)
    model = getattr(transformers, family + head)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float("norm" in name and name.endswith("weight")), spread)
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.normal_()
    return model


def pair(folder: Path, variant: str, head: str = "ForConditionalGeneration", **changes: Any) -> Any:
    """The peer and our model of its files, for the task that its class is for."""
    theirs = peer(variant, head, **changes)
    theirs.save_pretrained(folder)
    loaded = load_model(folder, "encode" if head == "Model" else None)
    assert not loaded.report
    assert not loaded.notes
    return theirs, loaded.model


def documents(*lengths: int, end: int, seed: int = 1) -> list[Tensor]:
    """Random words without special tokens, but for the last one of each document."""
    draw = torch.Generator().manual_seed(seed)
    found = [torch.randint(3, VOCAB, (length,), generator=draw) for length in lengths]
    for document in found:
        document[-1] = end
    return found


def layout_of(rows: Sequence[Tensor], *, marked: bool = False) -> Layout:
    return Layout.packed([len(row) for row in rows], marked=[[0]] * len(rows) if marked else None)


def call(theirs: Any, ids: Sequence[Tensor], **more: Any) -> Any:
    """Transformers' answer to documents in one batch, padded behind; LED's first tokens are global."""
    encoder = theirs.get_encoder()
    if hasattr(encoder, "set_attention_type"):  # a short document has switched it for good
        encoder.set_attention_type(theirs.config.attention_type)
    mask = padded([torch.ones_like(one) for one in ids], 0)
    if theirs.config.model_type == "led":
        more["global_attention_mask"] = torch.zeros_like(mask).index_fill(1, torch.tensor(0), 1)
    return theirs(padded(ids, theirs.config.pad_token_id), attention_mask=mask, **more)


def expected(theirs: Any, head: str, ids: Sequence[Tensor], texts: Sequence[Tensor]) -> Tensor:
    """What transformers computes of each document by itself, as rows like ours."""
    found = []
    for document, text in zip(ids, texts, strict=True):
        if head in ("Model", "ForConditionalGeneration"):
            answer = call(theirs, [document], decoder_input_ids=text[None])
            one = (answer.last_hidden_state if head == "Model" else answer.logits)[0]
        else:
            answer = call(theirs, [document])
            spans = head == "ForQuestionAnswering"
            one = torch.stack([answer.start_logits[0], answer.end_logits[0]], 1) if spans else answer.logits
        found.append(one)
    return torch.cat(found)


def given(ours: TaskModel, ids: Sequence[Tensor], texts: Sequence[Tensor], *, marked: bool) -> Tensor:
    """What we compute of all documents at once."""
    layout, written = layout_of(ids, marked=marked), layout_of(texts)
    if task_name(ours) == "encode":
        body: Any = ours.backbone
        found: Tensor = body.decode(
            body(torch.cat(list(ids)), layout), layout, torch.cat(list(texts)), written
        )
    elif task_name(ours) == "summarize":
        found = ours(torch.cat(list(ids)), layout, torch.cat(list(texts)), written)
    else:
        found = ours(torch.cat(list(ids)), layout)
    return found
