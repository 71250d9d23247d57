"""From a model to a folder: as Hugging Face's where that computes the same, else as a type of our own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from longspan.checkpoints.labels import written
from longspan.checkpoints.load import sets_head_dropout
from longspan.checkpoints.matching import is_tied, pieces, stored
from longspan.checkpoints.sentence_transformers import is_module_file, write_modules
from longspan.checkpoints.token_heads import is_token_head, write_token_heads
from longspan.errors import bad
from longspan.families.backbone import Backbone
from longspan.families.base import BARE, PRETRAINING, Family
from longspan.families.keys import KeyTable
from longspan.families.registry import DECODER, READER, all_families, family_of, own_fields
from longspan.families.schema import FIELDS, OWN, Raw
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import as_json, replaced_files
from longspan.formats.weights import SHARD_BYTES, is_weights, save_weights
from longspan.nn.heads import PoolingHead
from longspan.nn.lora import merged
from longspan.nn.quantized import is_quantized
from longspan.tasks.registry import task_of
from longspan.text.tokenizer import is_tokenizer_file

CONFIG, GENERATION = "config.json", "generation_config.json"
PROMPTS = "config_sentence_transformers.json"
_COMMON = {*FIELDS, OWN, READER, DECODER, "pad_token_id", "max_position_embeddings", "classifier_dropout"}
"""Fields that mean something else, or other values, in other families."""
_LABELS = {"id2label", "label2id", "num_labels", "_num_labels", "problem_type"}


def save_model(
    model: TaskModel | Backbone,
    folder: str | Path,
    *,
    labels: Sequence[str] | None = None,
    problem: str | None = None,
    extra: Raw | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Weights and config.json, in the place of those that are there, all of them or none.

    `extra` is the config.json that it was loaded with, whose unknown fields are kept.
    """
    with replaced_files(Path(folder), owns=is_model_file, last=CONFIG) as fresh:
        write_model(model, fresh, labels=labels, problem=problem, extra=extra, shard_bytes=shard_bytes)


def is_model_file(name: str) -> bool:
    """Whether a file of that name is one of those that `write_model` writes."""
    return name == CONFIG or is_weights(name) or is_module_file(name) or is_token_head(name)


def is_reader_file(name: str) -> bool:
    """Whether a file of that name belongs to a model with its tokenizer and settings."""
    return is_model_file(name) or is_tokenizer_file(name) or name in (PROMPTS, GENERATION)


def write_model(
    model: TaskModel | Backbone,
    place: Path,
    *,
    labels: Sequence[str] | None = None,
    problem: str | None = None,
    extra: Raw | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """The same into a folder without a model, which may be left half written; adapters are merged there."""
    if is_quantized(model):
        repair = "Save it without precision='int8'."
        raise bad("model", "of floating-point weights to be saved", "int8", repair)
    if not isinstance(model, TaskModel):
        model = TaskModel(model, PoolingHead(model.config.encoder.width), BARE)
    raw, ending = dict(extra or {}), model.architecture
    task, config = task_of(ending), model.backbone.config
    family, unused = family_of(config, raw), tuple[str, ...]()
    if family.why_not(config, ending):
        table = family.own_table(ending, task.saved_as, config, task.modules)
        class_name = family.own_class_name(config, ending)
        fields = own_fields(config)
    else:
        table = family.table(ending, "" if ending == BARE else family.prefix)
        class_name = _class_name(model, family, raw)
        unused = family.unused_modules(class_name)
        fields = family.write(config) | {"model_type": family.model_type}
    fields |= {"architectures": [class_name]} | _details(model, labels, problem, raw)
    with merged(model):
        save_weights(place, _tensors(model, table) | _unused(model, table, unused), shard_bytes=shard_bytes)
    kept = _kept(raw, ending, fields["model_type"]) | fields
    (place / CONFIG).write_text(as_json(dict(sorted(kept.items()))), encoding="utf-8")
    write_token_heads(place, model.token_heads)
    if isinstance(model.head, PoolingHead) and not config.has_decoder:
        write_modules(place, model.head, model.config.width, min(model.config.positions, model.longest))


def _class_name(model: TaskModel, family: Family, raw: Raw) -> str:
    """The class of the file that it was loaded from, if it has all that this class holds."""
    name = family.class_name(model.backbone.config, model.architecture, raw)
    if name.endswith(PRETRAINING) and "cls.seq_relationship.weight" not in model.spare:
        return family.class_name(model.backbone.config, model.architecture, {})
    return name


def _tensors(model: TaskModel, table: KeyTable) -> dict[str, Tensor]:
    tied = is_tied(model)
    named = (pieces(model, name, parameter, table, tied=tied) for name, parameter in stored(model))
    tensors = {key: rows for parts in named for key, rows in parts}
    if model.decodes_words and not tied:  # Hugging Face's class then holds all that others tie
        for a, b in ((table.key(a), table.key(b)) for a, b in table.ties.items()):
            there, absent = (a, b) if a in tensors else (b, a)
            if absent not in tensors:
                tensors[absent] = tensors[there].clone()
    return tensors


def _unused(model: TaskModel, table: KeyTable, modules: tuple[str, ...]) -> dict[str, Tensor]:
    """Modules that the class holds but does not use: as they were loaded, else new, lest they are missed."""
    width, dtype = model.config.width, model.backbone.word_embeddings.weight.dtype
    weight = torch.randn(width, width, generator=torch.Generator().manual_seed(0)) * model.config.init_std
    new = {"weight": weight, "bias": torch.zeros(width)}
    return {
        table.key(f"{module}.{leaf}"): model.spare.get(f"{module}.{leaf}", fresh).to(dtype)
        for module in modules
        for leaf, fresh in new.items()
    }


def _kept(raw: Raw, ending: str, model_type: str) -> dict[str, Any]:
    """What is written back as it was: data that Longspan does not know, and what the task does not touch."""
    task = task_of(ending)
    dropped = {"torch_dtype"}.union(*(family.stale for family in all_families()))
    dropped |= _LABELS if task.has_labels or task.drops_labels else set()
    if raw.get("model_type") != model_type:
        dropped |= _COMMON.union(*(family.fields for family in all_families()))
    return {name: value for name, value in raw.items() if name not in dropped}


def _details(model: TaskModel, labels: Sequence[str] | None, problem: str | None, raw: Raw) -> dict[str, Any]:
    """Fields about the head, and the dtype."""
    dtype = model.backbone.word_embeddings.weight.dtype
    fields: dict[str, Any] = {"dtype": str(dtype).removeprefix("torch.")}
    task, tied = task_of(model.architecture), is_tied(model)
    if task.has_labels:
        fields |= written(labels, problem, len(model.get_parameter("head.out.weight")), raw)
    if model.decodes_words or model.backbone.config.has_decoder:  # whose two sides always share their words
        fields["tie_word_embeddings"] = not model.decodes_words or tied
    if sets_head_dropout(model, task):
        rate = vars(model.head)["dropout"]
        usual = rate == model.config.dropout and model.head_dropout is None
        if not usual or raw.get("classifier_dropout") is not None:
            fields["classifier_dropout"] = rate
    return fields
