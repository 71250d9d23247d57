"""From a model to a folder: as Hugging Face's where that computes the same, else as a type of our own."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from longspan.checkpoints.families import DECODER, READER, family_of, own_fields
from longspan.checkpoints.families.bart import FIELDS as SEQ2SEQ_FIELDS
from longspan.checkpoints.families.base import CLASSES, PRETRAINING, Family
from longspan.checkpoints.families.etc import DEFAULTS as ETC_FIELDS
from longspan.checkpoints.families.longformer import ORIGINAL
from longspan.checkpoints.fit import is_tied, pieces, stored
from longspan.checkpoints.keymap import TIED, KeyTable
from longspan.checkpoints.labels import written
from longspan.checkpoints.load import has_own_dropout
from longspan.checkpoints.schema import FIELDS, OWN, Raw
from longspan.checkpoints.sentence_transformers import write_modules
from longspan.errors import bad
from longspan.formats.weights import save_weights
from longspan.models.seq2seq import Seq2Seq
from longspan.models.task import Body, TaskModel
from longspan.models.writer import Rereader
from longspan.nn.heads import PoolingHead
from longspan.nn.quantised import is_quantised

_FAMILIAR = {
    *FIELDS,
    *ETC_FIELDS,
    *SEQ2SEQ_FIELDS,
    *(OWN, READER, DECODER),
    *("pad_token_id", "max_position_embeddings", "attention_window", "attention_type", "block_size"),
    *("num_random_blocks", "use_bias", "rescale_embeddings", "is_decoder", "classifier_dropout"),
    *("embedding_size", "relative_attention_num_buckets"),
}
"""Fields that mean something to one family; another must not inherit them."""
_STALE = {*ORIGINAL, "attention_mode", "torch_dtype"}
_LABELS = {"id2label", "label2id", "num_labels", "_num_labels", "problem_type"}


def save_model(
    model: TaskModel | Body,
    folder: str | Path,
    *,
    labels: Sequence[str] | None = None,
    problem: str | None = None,
    extra: Raw | None = None,
    shard_bytes: int = 5_000_000_000,
) -> None:
    """Weights and config.json; `extra` is the one that it was loaded with, whose unknown fields are kept."""
    if is_quantised(model):
        raise bad(
            "model", "of floating-point weights to be saved", "int8", "Save it without precision='int8'."
        )
    if not isinstance(model, TaskModel):
        model = TaskModel(model, PoolingHead(model.config.width), "encode")
    place, raw, task = Path(folder), dict(extra or {}), model.task
    config = model.body.config
    family, spares = family_of(config, raw), tuple[str, ...]()
    if family.why_not(config, task):
        table = family.table(task, None)
        class_name = "Longspan" + CLASSES[task]
        fields = own_fields(config)
    else:
        table = family.table(task, "" if task == "encode" else family.prefix)
        class_name = _class_name(model, family, raw)
        spares = family.spares(class_name)
        fields = family.write(config) | {"model_type": family.model_type}
    fields |= {"architectures": [class_name]} | _details(model, labels, problem, raw)
    save_weights(place, _tensors(model, table) | _spare(model, table, spares), shard_bytes=shard_bytes)
    _write_json(place / "config.json", _kept(raw, task, fields["model_type"]) | fields)
    if isinstance(model.head, PoolingHead) and not isinstance(model.body, Seq2Seq):
        write_modules(place, model.head, model.config.width)


def _class_name(model: TaskModel, family: Family, raw: Raw) -> str:
    """The class of the file that it was loaded from, if it has all that this class holds."""
    found = family.class_name(model.body.config, model.task, raw)
    if found.endswith(PRETRAINING) and "cls.seq_relationship.weight" not in model.spare:
        return family.class_name(model.body.config, model.task, {})
    return found


def _tensors(model: TaskModel, table: KeyTable) -> dict[str, Tensor]:
    tied = is_tied(model)
    tensors = {
        key: rows
        for name, parameter in stored(model)
        for key, rows in pieces(name, parameter, table, tied=tied)
    }
    if model.task in TIED and not tied:  # Hugging Face's class then holds all that others tie
        for a, b in ((table.key(a), table.key(b)) for a, b in table.ties.items()):
            there, absent = (a, b) if a in tensors else (b, a)
            if absent not in tensors:
                tensors[absent] = tensors[there].clone()
    return tensors


def _spare(model: TaskModel, table: KeyTable, modules: tuple[str, ...]) -> dict[str, Tensor]:
    """Modules that the class holds but does not use: as they were loaded, else new, lest they are missed."""
    width, dtype = model.config.width, model.body.embeddings.words.weight.dtype
    new = {
        "weight": torch.randn(width, width, generator=torch.Generator().manual_seed(0))
        * model.config.init_std,
        "bias": torch.zeros(width),
    }
    return {
        table.key(f"{module}.{leaf}"): model.spare.get(f"{module}.{leaf}", fresh).to(dtype)
        for module in modules
        for leaf, fresh in new.items()
    }


def _kept(raw: Raw, task: str, model_type: str) -> dict[str, Any]:
    """What is written back as it was: data that Longspan does not know, and what the task does not touch."""
    dropped = _STALE | (_LABELS if task in ("classify", "tag", "answer") else set())
    if raw.get("model_type") != model_type:
        dropped |= _FAMILIAR
    return {name: value for name, value in raw.items() if name not in dropped}


def _details(model: TaskModel, labels: Sequence[str] | None, problem: str | None, raw: Raw) -> dict[str, Any]:
    """Fields about the head, and the dtype."""
    dtype = model.body.embeddings.words.weight.dtype
    fields: dict[str, Any] = {"dtype": str(dtype).removeprefix("torch.")}
    if model.task in ("classify", "tag"):
        fields |= written(labels, problem, len(model.get_parameter("head.out.weight")), raw)
    if model.task in TIED or isinstance(model.body, Seq2Seq):  # whose two sides always share their words
        fields["tie_word_embeddings"] = model.task not in TIED or is_tied(model)
    if model.task in ("classify", "tag", "choose") and has_own_dropout(model):
        rate = vars(model.head)["dropout"]
        usual = rate == model.config.dropout and not isinstance(model, Rereader)
        fields["classifier_dropout"] = None if usual else rate
    return fields


def _write_json(path: Path, fields: Mapping[str, Any]) -> None:
    """In one step, so that a crash leaves the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")
    temporary.replace(path)
