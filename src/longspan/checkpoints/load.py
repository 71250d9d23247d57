"""From a folder to a model: the config first, then shapes, and last the tensors, mapped and not copied."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from longspan.checkpoints.adapters import Adapter, adapter_folder, opened
from longspan.checkpoints.labels import read_labels, read_problem
from longspan.checkpoints.late_interaction import CLASS, read_late_interaction
from longspan.checkpoints.matching import DECODER, NoInit, assign, match_weights, put, settle, stored_dtype
from longspan.checkpoints.report import LoadReport
from longspan.checkpoints.sentence_transformers import Modules, read_modules, read_projections
from longspan.checkpoints.token_heads import read_token_heads
from longspan.errors import bad, number, refused
from longspan.families.base import BARE, OWN_CLASS, Family, ModelConfig
from longspan.families.keys import KeyTable, prefix_of
from longspan.families.registry import all_families, is_own, read_config
from longspan.families.schema import Raw, flag
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import settled
from longspan.formats.files import inside, read_json
from longspan.formats.tensorflow import bundle_in
from longspan.formats.weights import Weights, open_weights
from longspan.hub import resolve
from longspan.nn.heads import PoolingHead, PredictionHead
from longspan.tasks.base import Task
from longspan.tasks.late_interaction import FIELD, LATE_INTERACTION
from longspan.tasks.registry import TASKS, build, task_named, task_of

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
    normalize: bool | None = None,
    ignore_mismatched_sizes: bool = False,
    adapter: str | Path | None = None,
    **where: Any,
) -> LoadedModel:
    """The model in a folder or on the hub, for the task it was made for or another, in evaluation mode.

    `dtype` None keeps what is stored; `pooling` and `normalize` shape the vectors of the task "encode";
    `adapter` names the one that is merged, of a file that holds several, or is the folder of one by peft;
    `where` goes to `hub.resolve` (revision, cache_dir, token, local_files_only, trust_remote_code=False).
    """
    folder, beside = resolve(folder_or_name, **where), adapter_folder(adapter)
    with settled(folder), opened(beside) as lora:
        return _load(
            folder,
            task,
            labels=labels,
            dtype=dtype,
            pooling=pooling,
            normalize=normalize,
            ignore_mismatched_sizes=ignore_mismatched_sizes,
            adapter=None if beside or adapter is None else str(adapter),
            lora=lora,
        )


def _load(
    folder: Path,
    task: str | None,
    *,
    labels: int | Sequence[str] | None,
    dtype: str | torch.dtype | None,
    pooling: str | None,
    normalize: bool | None,
    ignore_mismatched_sizes: bool,
    adapter: str | None,
    lora: Adapter | None,
) -> LoadedModel:
    late = read_late_interaction(folder)
    modules = None if late else read_modules(folder)
    place = modules.transformer if modules else folder
    raw = read_raw(place)
    if late:
        raw = {**raw, FIELD: late.settings, "architectures": [CLASS]}
    if raw.get("architectures") == [CLASS]:
        task = _late_task(task)
    family, config = read_config(raw)
    job = _task(task, family, raw, modules)
    own, chosen_dtype = is_own(raw), None if dtype is None else _dtype(dtype)
    config = config if own else family.for_class(config, job.architecture)
    weights = _merged(family, raw, family.adapt(raw, open_weights(place, family.variable_names)), adapter)
    weights = late.with_projection(weights) if late else weights
    table = _table(family, config, job, weights, None if own else place)
    _refuse_missing_layers(config, table, weights, place)
    _refuse_other_words(family, table, weights, place)
    names = read_labels(raw, labels) if job.has_labels else ()
    vectors = _vectors(modules, pooling, normalize, table, weights) if job.architecture == BARE else {}
    with torch.device("meta"), NoInit():
        model = build(config, job.name, labels=len(names) or 2, **vectors, **_head_sizes(job, table, weights))
    _set_head_dropout(model, job, raw)
    if model.decodes_words:
        table = _tied_as_stored(model, table, weights, raw, family)
    unused = () if own else family.unused_modules(family.class_name(config, job.architecture, raw))
    match = match_weights(model, table, weights, unused=unused)
    if lora is not None:
        lora.match(model, raw, match)
    drawn = settle(match, place, ignore_mismatched_sizes=ignore_mismatched_sizes)
    stored = stored_dtype(match, weights, place)
    assign(model, match, drawn, weights, chosen_dtype or stored)
    if lora is not None:
        lora.merge(model)
    model.problem = read_problem(raw) if job.has_problem else None
    model.token_heads = read_token_heads(place, model.config.width)
    if isinstance(model.head, PoolingHead):
        model.head.projections.extend(read_projections(modules, model.config.width))
        if chosen_dtype is not None:
            model.head.projections.to(chosen_dtype)
    return LoadedModel(
        model=model.eval(),
        config=raw,
        report=match.report(table, weights),
        notes=tuple(match.notes),
        folder=place,
        labels=names,
        problem=model.problem,
    )


def _merged(family: Family, raw: Raw, weights: Weights, adapter: str | None) -> Weights:
    """The weights with an adapter added, where a file holds any."""
    if family.merge is not None and not is_own(raw):
        return family.merge(raw, weights, adapter)
    if adapter is not None:
        repair = "Files of its kind hold no adapters, and there is no such folder."
        raise bad("adapter", f"None for {family.name}, or the folder of an adapter", adapter, repair)
    return weights


def _table(family: Family, config: ModelConfig, job: Task, weights: Weights, place: Path | None) -> KeyTable:
    """The names in a file: our own, or those of transformers' files at a place."""
    if place is None:
        return family.own_table(job.architecture, job.saved_as, config, job.modules)
    named = family.as_stored(weights.shapes)
    return named.table(job.architecture, prefix_of(weights.shapes, place, named.words), job.modules)


def _task(name: str | None, family: Family, raw: Raw, modules: Modules | None) -> Task:
    """The task asked for, else the one that the folder was made for."""
    if name is not None:
        task = task_named(name)
        heads = {*family.heads, *family.own_heads}
        family_tasks = [one.name for one in TASKS.values() if one.architecture in heads or one.modules]
        if task.name not in family_tasks:
            raise bad("task", f"one of {', '.join(family_tasks)} for {family.name}", task.name)
        return task
    for task in TASKS.values():
        if task.modules and raw.get("architectures") == [OWN_CLASS + task.architecture]:
            return task
    return task_of(BARE if modules else family.architecture(raw))


def _late_task(name: str | None) -> str:
    """The only task of a model of late interaction, whose other states mean nothing."""
    if name is not None and task_named(name) is not LATE_INTERACTION:
        repair = "It compares tokens: use rank(), or search an index."
        raise bad("task", f"{LATE_INTERACTION.name} for this model", name, repair)
    return LATE_INTERACTION.name


def read_raw(folder: Path) -> dict[str, Any]:
    """config.json, or the file that stands in its place beside checkpoints of the authors' own code."""
    if os.path.lexists(folder / "config.json"):
        return read_json(inside(folder, "config.json"))
    for family in all_families():
        if family.config_file and os.path.lexists(folder / family.config_file):
            return {**read_json(inside(folder, family.config_file)), "model_type": family.model_type}
    if bundle_in(folder):
        nameless = [family for family in all_families() if family.config_file is None]
        repair = " ".join(
            f'For the released {one.name} write {{"model_type": "{one.model_type}"}} into one.'
            for one in nameless
        )
        raise refused(folder, "it has a checkpoint of TensorFlow, but no config.json", repair)
    return read_json(inside(folder, "config.json"))


def _refuse_missing_layers(config: ModelConfig, table: KeyTable, weights: Weights, place: Path) -> None:
    """Before so many layers are built."""
    for stack, layers in config.stacks.items():
        (last, *_) = table.keys(f"backbone.{stack}layers.{layers - 1}.feed_forward_norm.weight")
        if table.find(last, weights.shapes, tied=False) is None:
            raise refused(place, f"its config asks for {layers} layers, but it has no {last!r}")


def _head_sizes(job: Task, table: KeyTable, weights: Weights) -> dict[str, int]:
    """Sizes of the head that only the stored tensors tell."""
    found = {
        option: table.find(table.keys(f"head.{name}")[0], weights.shapes, tied=False)
        for option, name in job.head_sizes.items()
    }
    return {option: weights.shapes[name][0][0] for option, name in found.items() if name}


def _refuse_other_words(family: Family, table: KeyTable, weights: Weights, place: Path) -> None:
    """Encoder and decoder share their words: a file where they differ holds another model."""
    names = dict.fromkeys([*family.backbone_ties.values(), *family.backbone_ties])
    first, *others = [key for name in names if (key := table.key(name)) in weights] or [""]
    for other in others:
        if not torch.equal(weights[other], weights[first]):
            raise refused(place, f"{other!r} is not {first!r}", "Here decoders share the encoder's words.")


def _dtype(name: str | torch.dtype) -> torch.dtype:
    dtype = DTYPES.get(name) if isinstance(name, str) else name
    if dtype not in DTYPES.values():
        raise bad("dtype", f"one of {', '.join(DTYPES)}, or None for what is stored", name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def _vectors(
    modules: Modules | None, pooling: str | None, normalize: bool | None, table: KeyTable, weights: Weights
) -> dict[str, Any]:
    """The options of the pooling head: as asked, else as the folder says, else the plain mean."""
    stated = modules.pooling if modules else "mean"
    return {
        "pooling": stated if pooling is None else pooling,
        "normalize": bool(modules and modules.normalize) if normalize is None else normalize,
        "pooler": "dense" in table.head
        and table.find(table.keys("head.dense.weight")[0], weights.shapes, tied=True) is not None,
    }


def sets_head_dropout(model: TaskModel, task: Task) -> bool:
    """Whether a checkpoint says at which rate the head drops; in most families that of classifiers only."""
    may = model.head_dropout is not None or model.config.separate_head_dropout
    return may and (task.head_dropout or isinstance(model.head, PredictionHead))


def _set_head_dropout(model: TaskModel, task: Task, raw: Raw) -> None:
    """In most families a head may drop at another rate than the backbone."""
    rate = raw.get("classifier_dropout", model.head_dropout)
    if rate is None or not hasattr(model.head, "out"):
        return
    rate = number("classifier_dropout", rate, 0.0, 1.0, below=True)
    if sets_head_dropout(model, task):
        vars(model.head)["dropout"] = rate


def _tied_as_stored(
    model: TaskModel, table: KeyTable, weights: Weights, raw: Raw, family: Family
) -> KeyTable:
    """A decoder that is stored and differs from the word embeddings is a parameter of its own.

    So is one that is not stored, if neither the file nor its family ties them: it will be missed.
    """
    ties = flag(raw, "tie_word_embeddings", family.ties_words)
    keys = *table.keys(DECODER), *table.keys(f"backbone.{model.backbone.config.words_name}")
    both = all(key in weights.shapes for key in keys)
    tied = ties or family.ties_words
    if both:
        same = len({weights.shapes[key] for key in keys}) == 1
        tied = ties and same and torch.equal(*(weights[key] for key in keys))
    words = model.backbone.word_embeddings.weight
    put(model, DECODER, words if tied else torch.empty_like(words))
    return table if tied or both else replace(table, ties={})
