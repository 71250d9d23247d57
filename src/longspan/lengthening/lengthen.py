"""From a short model to a long one: the same weights, a sparse pattern, more positions, and a proof."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from longspan.checkpoints.load import LoadedModel, load_model
from longspan.checkpoints.matching import DECODER, NoInit, is_tied, put, stored
from longspan.checkpoints.save import CONFIG, is_reader_file, write_model
from longspan.errors import bad, one_of, refused
from longspan.families.base import ModelConfig
from longspan.families.config import EncoderConfig
from longspan.families.lengthening import Lengthening, Option, Short
from longspan.families.registry import family_of, lengthenings
from longspan.families.scaling import TIMES
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import READY, replaced_files, settled
from longspan.lengthening.card import written_files
from longspan.lengthening.decoders import GENERATION, config_of, decoder_positions, with_decoder
from longspan.lengthening.positions import stretched
from longspan.lengthening.report import LengthenReport, command
from longspan.lengthening.self_check import TOLERANCE, difference, drift
from longspan.nn.heads import PoolingHead
from longspan.tasks.registry import build, task_of

POSITIONS = "embeddings.positions.weight"
LENGTHS = {False: 4096, True: 16384}
"""Tokens of a lengthened model, without and with a decoder, if none are asked for: as in the papers."""
COMPARED = 2048
"""Tokens of the longest document on which two models are compared that need not agree on each."""


def lengthen(
    source: str | Path,
    to: int | None = None,
    *,
    out: str | Path | None = None,
    pattern: str | None = None,
    positions: str = "copy",
    period: int | None = None,
    task: str | None = None,
    force: bool = False,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
    **options: Option | None,
) -> LengthenReport:
    """Make the short model in a folder or on the hub read `to` tokens, and write it to the folder `out`.

    `to` is 4096 by default, and 16384 for a model with a decoder: its encoder is made long, and it writes
    texts as long as before; if it classifies or answers, its decoder reads as much. `pattern` names the kind
    of long model, longformer unless the source has rotary positions: then it is rope, which scales their
    angles, by default for documents 4 times as long. `options` are those of the kind, such as radius, block
    or scaling: `longspan lengthen --options` lists them. `positions` is "copy" (with a `period`),
    "interpolate" or "random", and left out where there is no table of them. The new model is compared
    with its source before it is written; out=None writes nothing. `force` replaces a model that is there.
    """
    place = None if out is None else _place(Path(out), force=force)
    loaded = load_model(
        source, task, revision=revision, cache_dir=cache_dir, token=token, local_files_only=local_files_only
    )
    if place is not None and loaded.folder.resolve().is_relative_to(place.resolve()):
        raise bad("out", "another folder than the source's", str(out))
    old, dtype = loaded.model, loaded.model.backbone.word_embeddings.weight.dtype
    old.float()
    pattern = _usual(old) if pattern is None else pattern
    length = _length(old) if to is None else to
    new = lengthened(old, length, pattern=pattern, positions=positions, period=period, **options)
    kind = lengthenings()[pattern]
    chosen = kind.checked(options)
    how = command(length, pattern, positions, period, task, chosen)
    report = _compare(old, new, kind, str(source), positions, period, how)
    kind.finish(new, chosen)
    if place is not None:
        _write(new.to(dtype), loaded, place, report, same=kind.scales_angles)
    return replace(report, folder=place)


def _write(model: TaskModel, source: LoadedModel, place: Path, report: LengthenReport, *, same: bool) -> None:
    """The model with all that belongs beside it, in place at once or not at all.

    If it is of the `same` family as the source, all fields of its config.json are kept that nothing changes.
    """
    with replaced_files(place, owns=is_reader_file, last=CONFIG) as fresh:
        labels, extra = source.labels or None, source.config if same else _neutral(source.config)
        write_model(model, fresh, labels=labels, problem=source.problem, extra=extra)
        written_files(fresh, source.folder, model, report)


def lengthened(
    source: TaskModel,
    to: int,
    *,
    pattern: str | None = None,
    positions: str = "copy",
    period: int | None = None,
    **options: Option | None,
) -> TaskModel:
    """The same model with a sparse pattern and `to` positions; it shares the weights of the source."""
    kinds, pattern = lengthenings(), _usual(source) if pattern is None else pattern
    kind = kinds[one_of("pattern", pattern, kinds)]
    if kind.scales_angles is source.config.has_position_table:
        wanted = "one for a table of positions" if kind.scales_angles else "rope"
        raise bad("pattern", f"{wanted}, as the source is {source.config.family}", pattern)
    if kind.keeps_positions and (positions != "copy" or period is not None):
        raise bad("positions", f"left out for {pattern}, which keeps the table", positions)
    architecture, has_decoder = source.architecture, source.backbone.config.has_decoder
    short = Short(config=source.config, architecture=architecture, has_decoder=has_decoder, to=to)
    for name, value in options.items():
        owners = [one.name for one in kinds.values() if name in one.options]
        if value is not None and owners and name not in kind.options:
            raise bad(name, f"given for {', '.join(owners)} only", pattern)
    config = kind.config(short, kind.checked(options))
    return _fill(source, config, kind, positions, period)


def _fill(
    source: TaskModel, config: EncoderConfig, kind: Lengthening, method: str, period: int | None
) -> TaskModel:
    """A model of this config with the weights of the source, its positions stretched by some method."""
    head, known = source.head, dict(stored(source)) | dict(source.named_parameters(remove_duplicate=False))
    whole: ModelConfig = config
    if source.backbone.config.has_decoder:
        whole = with_decoder(source, config)
        known |= decoder_positions(source, whole, method, period)
        config = whole.encoder
    offset, dtype = source.config.position_offset, source.backbone.word_embeddings.weight.dtype
    if not kind.keeps_positions:
        name, std = next(iter(position_tables(source))), source.config.init_std
        table = source.get_parameter(name).detach()
        rows = stretched(table[offset:], config.positions, method, period=period, std=std)
        lead = table[:offset] if offset else table.new_zeros(config.position_offset, table.shape[1])
        known[name] = torch.cat([lead[: config.position_offset], rows])
    options: dict[str, Any] = {}
    if isinstance(head, PoolingHead):
        options = {"pooling": head.pooling, "normalize": head.normalize, "pooler": head.dense is not None}
    task = task_of(source.architecture)
    labels = len(known["head.out.weight"]) if task.has_labels else 2
    with torch.device("meta"), NoInit():
        target = build(whole, task.name, labels=labels, **options)
    for part, tensor in list(stored(target)):
        put(target, part, known[part] if part in known else torch.empty(tensor.shape, dtype=dtype))
    kind.start(target, source.config)
    if source.decodes_words:
        tied = is_tied(source)
        put(target, DECODER, target.backbone.word_embeddings.weight if tied else known[DECODER])
    if isinstance(head, PoolingHead) and isinstance(target.head, PoolingHead):
        target.head.projections = head.projections
    if "dropout" in vars(head):
        vars(target.head)["dropout"] = vars(head)["dropout"]
    return target.eval()


def _compare(
    old: TaskModel,
    new: TaskModel,
    kind: Lengthening,
    source: str,
    positions: str,
    period: int | None,
    how: str,
) -> LengthenReport:
    """The report, or the error that the models differ where they must not."""
    config, short = new.config, old.config.positions
    near = config.exact_up_to if old.config.full_attention else short
    most, exact = min(near, short, period or short), kind.exact(old.config, config)
    if exact is not None:
        most = min(exact or short, COMPARED)
    farther = (2 * near - 2, short) if exact is None else (min(short, COMPARED),)
    beyond = sorted({most, *(n for n in farther if most < n <= short)})
    drifts = tuple(drift(old, new, tokens) for tokens in beyond)
    error = _difference(old, new, kind, most)
    if exact != 0 and not error <= TOLERANCE:
        raise refused(source, f"lengthened, it differs by {error:.1e} on documents of up to {most} tokens")
    family, task = family_of(new.backbone.config, {}), task_of(old.architecture)
    why = family.why_not(new.backbone.config, old.architecture) or family.gone.get(old.architecture)
    radius = getattr(config, "radius", None)
    copied = ["decoder"] if new.backbone.config.has_decoder else []
    copied += ["biases by distance"] if config.buckets else []
    copied += kind.copied(old.config)
    copied += [] if isinstance(new.head, PoolingHead) else [f"head ({task.name})"]
    return LengthenReport(
        source=source,
        folder=None,
        task=task.name,
        pattern=kind.name,
        short=short,
        to=new.longest,
        positions="rotary" if kind.scales_angles else "kept" if kind.keeps_positions else positions,
        period=(period or short) if positions == "copy" and not kind.keeps_positions else None,
        radius=(radius,) * config.layers if isinstance(radius, int) else radius,
        block=getattr(config, "block", None) or None,
        copied=("embeddings", "layers", *copied),
        equal=exact != 0,
        equal_up_to=most,
        max_difference=error,
        command=how,
        drift=drifts,
        notes=kind.notes(config),
        loads_in_transformers=why is None,
        why_not=why,
    )


def _difference(old: TaskModel, new: TaskModel, kind: Lengthening, most: int) -> float:
    """How much they differ on documents of up to `most` tokens, with the new positions in both."""
    tables = {name: old.get_parameter(name).detach().clone() for name in position_tables(old)}
    for name, table in tables.items():
        rows = new.get_parameter(name)[position_tables(new)[name] :]
        lead = table[: position_tables(old)[name]]
        put(old, name, torch.cat([lead, rows])[: len(table)])
    with kind.compared(new):
        error = difference(old, new, most)
    for name, table in tables.items():
        put(old, name, table)
    return error


def position_tables(model: TaskModel) -> dict[str, int]:
    """The position tables, that of the documents first, and how many rows each has before position 0."""
    if not model.config.has_position_table:
        return {}
    reading = {"": model.config.position_offset}
    if model.backbone.config.has_decoder:
        reading = {"encoder.": model.config.position_offset, "decoder.": config_of(model).position_offset}
    return {f"backbone.{side}{POSITIONS}": offset for side, offset in reading.items()}


def _usual(source: TaskModel) -> str:
    """The kind of long model that a source becomes, if nobody says."""
    return "longformer" if source.config.has_position_table else "rope"


def _length(source: TaskModel) -> int:
    """And how long it becomes."""
    config = source.backbone.config
    return LENGTHS[config.has_decoder] if source.config.has_position_table else TIMES * config.positions


def _neutral(raw: dict[str, Any]) -> dict[str, Any]:
    """Fields of config.json that mean the same to every family."""
    tokens = ("bos_token_id", "eos_token_id", "sep_token_id")
    kept = (*tokens, "id2label", "label2id", "problem_type", *GENERATION)
    return {name: raw[name] for name in kept if name in raw}


def _place(out: Path, *, force: bool) -> Path:
    """The folder to write to, if nothing is lost by it."""
    out = out.expanduser().absolute()
    if out.is_dir():
        with settled(out):  # a save that was interrupted is one that was made
            files = [path for path in out.iterdir() if not path.name.startswith(READY)]
    if not out.exists() or (out.is_dir() and not files):
        return out
    if not force or not (out / "config.json").is_file():
        repair = "Pass force=True (--force) to replace a model." if out.is_dir() else ""
        raise bad("out", "a new or empty folder", str(out), repair)
    return out
