"""From a folder to a model: the config first, then shapes, and last the tensors, mapped and not copied."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from longspan.checkpoints.families import OWN, read_config
from longspan.checkpoints.families.base import Family
from longspan.checkpoints.families.etc import CONFIG as ETC_CONFIG
from longspan.checkpoints.fit import DECODER, NothingDrawn, assign, match, put, settle, stored_dtype
from longspan.checkpoints.keymap import TIED, KeyTable, prefix_of
from longspan.checkpoints.labels import read_labels, read_problem
from longspan.checkpoints.report import LoadReport
from longspan.checkpoints.schema import Raw, flag
from longspan.checkpoints.sentence_transformers import Modules, read_modules
from longspan.checkpoints.variables import weight_names
from longspan.errors import bad, refused
from longspan.formats.files import inside, read_json
from longspan.formats.tensorflow import bundle_in
from longspan.formats.weights import Weights, open_weights
from longspan.hub import resolve
from longspan.models.build import TASKS, build
from longspan.models.config import number
from longspan.models.longformer import LongformerConfig
from longspan.models.mpnet import MPNetConfig
from longspan.models.seq2seq import Seq2SeqConfig
from longspan.models.task import ModelConfig, TaskModel
from longspan.models.writer import Rereader

ONE_DROPOUT = (LongformerConfig, MPNetConfig)
"""Heads on these bodies drop at the body's rate."""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model as it was loaded, and what the folder says about it."""

    model: TaskModel
    config: dict[str, Any]
    "config.json as it stands: data, never acted on beyond the fields that Longspan knows."
    report: LoadReport
    "Names that did not fit."
    notes: tuple[str, ...]
    "What was done about them."
    folder: Path
    "Where the config and the weights are."
    labels: tuple[str, ...]
    "Names of the classes, for the tasks that have any."
    problem: str | None
    '"single", "multi" or "regression"; None if the file does not say.'


def load_model(
    folder_or_name: str | Path,
    task: str | None = None,
    *,
    labels: int | Sequence[str] | None = None,
    dtype: str | torch.dtype | None = None,
    pooling: str | None = None,
    normalise: bool | None = None,
    ignore_mismatched_sizes: bool = False,
    **where: Any,
) -> LoadedModel:
    """The model in a folder or on the hub, for the task it was made for or another, in evaluation mode.

    `dtype` None keeps what is stored; `pooling` and `normalise` shape the vectors of the task "encode";
    `where` goes to `hub.resolve` (revision, cache_dir, token, local_files_only, trust_remote_code=False).
    """
    folder = resolve(folder_or_name, **where)
    modules = read_modules(folder)
    place = modules.transformer if modules else folder
    raw = read_raw(place)
    family, config = read_config(raw)
    task = task or ("encode" if modules else family.task(raw))
    if task not in TASKS:
        raise bad("task", f"one of {', '.join(TASKS)}", task)
    config = config if raw.get("model_type") in OWN else family.for_task(config, task)
    wanted = None if dtype is None else _dtype(dtype)
    weights = family.adapt(raw, open_weights(place, rename=weight_names))
    own = raw.get("model_type") in OWN
    table = family.table(task, None if own else prefix_of(weights.shapes, place, family.words))
    for side, layers in _stacks(config).items():
        (last, *_) = table.keys(f"body.{side}layers.{layers - 1}.attention_norm.weight")
        if table.find(last, weights.shapes, tied=False) is None:  # before so many layers are built
            raise refused(place, f"its config asks for {layers} layers, but it has no {last!r}")
    _refuse_other_words(family, table, weights, place)
    names = read_labels(raw, labels) if task in ("classify", "tag") else ()
    vectors = _vectors(modules, pooling, normalise, table, weights) if task == "encode" else {}
    with torch.device("meta"), NothingDrawn():
        model = build(config, task, labels=len(names) or 2, **vectors)
    _set_head_dropout(model, raw)
    if task in TIED:
        _untie_if_stored_apart(model, table, weights, raw)
    fit = match(
        model, table, weights, spares=() if own else family.spares(family.class_name(config, task, raw))
    )
    drawn = settle(fit, place, ignore_mismatched_sizes=ignore_mismatched_sizes)
    stored = stored_dtype(fit, weights, place)
    assign(model, fit, drawn, weights, wanted or stored)
    return LoadedModel(
        model=model.eval(),
        config=raw,
        report=fit.report(table, weights),
        notes=tuple(fit.notes),
        folder=place,
        labels=names,
        problem=read_problem(raw) if task == "classify" else None,
    )


def read_raw(folder: Path) -> dict[str, Any]:
    """config.json; or what stands in its place beside the checkpoints of ETC."""
    if not os.path.lexists(folder / "config.json") and os.path.lexists(folder / ETC_CONFIG):
        return {**read_json(inside(folder, ETC_CONFIG)), "model_type": "etc"}
    if not os.path.lexists(folder / "config.json") and bundle_in(folder):
        repair = 'For the released BigBird-Pegasus write {"model_type": "bigbird_pegasus"} into one.'
        raise refused(folder, "it has a checkpoint of TensorFlow, but no config.json", repair)
    return read_json(inside(folder, "config.json"))


def _stacks(config: ModelConfig) -> dict[str, int]:
    """Where there are layers, and how many."""
    if isinstance(config, Seq2SeqConfig):
        return {"encoder.": config.encoder.layers, "decoder.": config.layers}
    return {"": config.layers}


def _refuse_other_words(family: Family, table: KeyTable, weights: Weights, place: Path) -> None:
    """Encoder and decoder share their words: a file where they differ holds another model."""
    names = dict.fromkeys([*family.body_ties.values(), *family.body_ties])
    first, *others = [key for name in names if (key := table.key(name)) in weights] or [""]
    for other in others:
        if not torch.equal(weights[other], weights[first]):
            raise refused(place, f"{other!r} is not {first!r}", "Here decoders share the encoder's words.")


def _dtype(given: str | torch.dtype) -> torch.dtype:
    found = DTYPES.get(given) if isinstance(given, str) else given
    if found not in DTYPES.values():
        raise bad("dtype", f"one of {', '.join(DTYPES)}, or None for what is stored", given)
    assert isinstance(found, torch.dtype)
    return found


def _vectors(
    modules: Modules | None, pooling: str | None, normalise: bool | None, table: KeyTable, weights: Weights
) -> dict[str, Any]:
    """The options of the pooling head: as asked, else as the folder says, else the plain mean."""
    stated = modules.pooling if modules else "mean"
    return {
        "pooling": stated if pooling is None else pooling,
        "normalise": bool(modules and modules.normalise) if normalise is None else normalise,
        "pooler": "dense" in table.head
        and table.find(table.keys("head.dense.weight")[0], weights.shapes, tied=True) is not None,
    }


def has_own_dropout(model: TaskModel) -> bool:
    """Whether the head may drop at another rate than the body."""
    return isinstance(model, Rereader) or not isinstance(model.config, ONE_DROPOUT)


def _set_head_dropout(model: TaskModel, raw: Raw) -> None:
    """Of most families a head may drop at another rate than the body."""
    rate = raw.get("classifier_dropout", 0.0 if isinstance(model, Rereader) else None)
    if rate is None or not has_own_dropout(model) or not hasattr(model.head, "out"):
        return
    rate = number("classifier_dropout", rate, 0.0, 1.0, below=True)
    if model.task in ("classify", "tag", "choose"):
        vars(model.head)["dropout"] = rate


def _untie_if_stored_apart(model: TaskModel, table: KeyTable, weights: Weights, raw: Raw) -> None:
    """A decoder that is stored and differs from the word embeddings is a parameter of its own."""
    (decoder,), (words,) = table.keys(DECODER), table.keys(f"body.{TIED[model.task]}")
    if decoder not in weights.shapes or words not in weights.shapes:
        return
    same = weights.shapes[decoder] == weights.shapes[words] and torch.equal(weights[decoder], weights[words])
    if not same or not flag(raw, "tie_word_embeddings", True):
        put(model, DECODER, torch.empty_like(model.body.embeddings.words.weight))
