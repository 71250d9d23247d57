"""From a short model to a long one: the same weights, a sparse pattern, more positions, and a proof."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from longspan.checkpoints.card import written_files
from longspan.checkpoints.decoders import GENERATION, decoder_positions, with_decoder
from longspan.checkpoints.families import family_of
from longspan.checkpoints.fit import DECODER, NothingDrawn, is_tied, put, stored
from longspan.checkpoints.keymap import TIED
from longspan.checkpoints.length_report import LengthenReport
from longspan.checkpoints.levels import begin_second_levels, poolingformer_config, second_level
from longspan.checkpoints.likeness import TOLERANCE, difference, drift
from longspan.checkpoints.load import LoadedModel, load_model
from longspan.checkpoints.long_configs import RADIUS, Radius, long_config, stitched_config
from longspan.checkpoints.positions import stretched
from longspan.checkpoints.save import save_model
from longspan.checkpoints.streams import begin_global_stream, global_tokens, without_global_tokens
from longspan.errors import bad, refused
from longspan.models.body import copy_local_to_global
from longspan.models.build import build
from longspan.models.config import EncoderConfig
from longspan.models.etc import EtcConfig
from longspan.models.longformer import LongformerConfig
from longspan.models.seq2seq import Seq2Seq
from longspan.models.stitched import StitchedConfig
from longspan.models.task import ModelConfig, TaskModel
from longspan.nn.heads import PoolingHead

POSITIONS = "body.embeddings.positions.weight"
LENGTHS = {False: 4096, True: 16384}
"""Tokens of a lengthened model, without and with a decoder, if none are asked for: as in the papers."""


def lengthen(
    source: str | Path,
    to: int | None = None,
    *,
    out: str | Path | None = None,
    pattern: str = "longformer",
    radius: Radius | None = None,
    block: int | None = None,
    positions: str = "copy",
    period: int | None = None,
    stitching: int | None = None,
    salience: Tensor | None = None,
    second: Mapping[str, Any] | None = None,
    task: str | None = None,
    force: bool = False,
    **where: Any,
) -> LengthenReport:
    """Make the short model in a folder or on the hub read `to` tokens, and write it to the folder `out`.

    `to` is 4096 by default, for a model with a decoder, such as BART, 16384: its encoder is made long, so it
    becomes a LED, and writes texts as long as before; if it classifies or answers, its decoder reads as much.
    `pattern` is "longformer" (with a `radius`, or one for each layer; by default 256, before a decoder 512,
    or half of what the source reads, if that is less), "bigbird" (with a `block`, 64), "etc" (with a `radius`
    as before; given a `block`, it has a global token for each so many tokens, else none), "poolingformer" (a
    longformer, radius 128, with a `second` level: fields of PoolingformerConfig; its source may be a
    Longformer) or "stitched" (with a `block`, 128, and `stitching`, 2, the number of layers that see across
    blocks, as far as the `radius`, 64; it has no longest document, and a table (vocab,) of `salience` can
    weigh its words).
    `positions` is "copy" (with a `period`), "interpolate" or "random". The new model is compared before it is
    written; out=None writes nothing. `force` replaces a model that is there. `where` is as in `load_model`.
    """
    place = None if out is None else _place(Path(out), force=force)
    loaded = load_model(source, task, **where)
    if place is not None and loaded.folder.resolve().is_relative_to(place.resolve()):
        raise bad("out", "another folder than the source's", str(out))
    old, dtype = loaded.model, loaded.model.body.embeddings.words.weight.dtype
    old.float()
    new = lengthened(
        old,
        LENGTHS[isinstance(old.body, Seq2Seq)] if to is None else to,
        pattern=pattern,
        radius=radius,
        block=block,
        positions=positions,
        period=period,
        stitching=stitching,
        salience=salience,
        second=second,
    )
    report = _compared(old, new, str(source), pattern, positions, period)
    if salience is not None:
        vars(new.head)["pooling"] = (
            "salient"  # only now: words that count by their salience give another vector
        )
    if place is not None:
        _write(new.to(dtype), loaded, place, report)
    return replace(report, folder=place)


def _write(model: TaskModel, source: LoadedModel, place: Path, report: LengthenReport) -> None:
    """The model with all that stands beside it, in place at once or not at all."""
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        labels, extra = source.labels or None, _neutral(source.config)
        save_model(model, temporary, labels=labels, problem=source.problem, extra=extra)
        written_files(temporary, source.folder, model, report)
        _moved(temporary, place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def lengthened(
    source: TaskModel,
    to: int,
    *,
    pattern: str = "longformer",
    radius: Radius | None = None,
    block: int | None = None,
    positions: str = "copy",
    period: int | None = None,
    stitching: int | None = None,
    salience: Tensor | None = None,
    second: Mapping[str, Any] | None = None,
) -> TaskModel:
    """The same model with a sparse pattern and `to` positions; it shares the weights of the source."""
    if second and pattern != "poolingformer":
        raise bad("second", "given for poolingformer only", pattern)
    if pattern == "stitched":
        if positions != "copy" or period is not None:
            raise bad("positions", "left out for stitched, which keeps the table", positions)
        config: EncoderConfig = stitched_config(source.config, radius, block, stitching, salience)
    else:
        if stitching is not None or salience is not None:
            raise bad("stitching and salience", "given for stitched only", pattern)
        if pattern == "longformer" and radius is None and isinstance(source.body, Seq2Seq):
            radius = min(2 * RADIUS, max(1, source.config.positions // 2))  # as in LED
        if pattern == "poolingformer":
            config = poolingformer_config(source.config, source.task, to, radius, block, second)
        else:
            config = long_config(source.config, source.task, to, pattern, radius, block)
    target = _filled(source, config, positions, period)
    if salience is not None:
        salient = salience.to(source.body.embeddings.words.weight.dtype)
        put(target, "head.salience.weight", salient.reshape(-1, 1))
    return target


def _filled(source: TaskModel, config: EncoderConfig, way: str, period: int | None) -> TaskModel:
    """A model of this config with the weights of the source, its positions stretched in some `way`."""
    head, known = source.head, dict(stored(source)) | dict(source.named_parameters(remove_duplicate=False))
    wanted: ModelConfig = config
    if isinstance(source.body, Seq2Seq):
        wanted = with_decoder(source, config)
        known |= decoder_positions(source, wanted, way, period)
        config = wanted.encoder
    old, offset, place = source.config, source.config.position_offset, next(iter(position_tables(source)))
    new = table = source.get_parameter(place).detach()
    if not isinstance(config, StitchedConfig):  # which keeps its table
        rows = stretched(table[offset:], config.positions, way, period=period, std=old.init_std)
        lead = table[:offset] if offset else table.new_zeros(config.position_offset, table.shape[1])
        new = torch.cat([lead[: config.position_offset], rows])
    options: dict[str, Any] = {}
    if isinstance(head, PoolingHead):
        options = {"pooling": head.pooling, "normalise": head.normalise, "pooler": head.dense is not None}
    labels = len(known["head.out.weight"]) if source.task in ("classify", "tag") else 2
    with torch.device("meta"), NothingDrawn():
        target = build(wanted, source.task, labels=labels, **options)
    for name, tensor in list(stored(target)):
        put(target, name, known[name] if name in known else torch.empty(tensor.shape, dtype=table.dtype))
    put(target, place, new)
    if not isinstance(old, LongformerConfig):  # it has learnt its own
        copy_local_to_global(target)
    begin_second_levels(target)
    if isinstance(config, EtcConfig):
        begin_global_stream(target)
    if source.task in TIED:
        tied = is_tied(source)
        put(target, DECODER, target.body.embeddings.words.weight if tied else known[DECODER])
    if "dropout" in vars(head):
        vars(target.head)["dropout"] = vars(head)["dropout"]
    return target.eval()


def _compared(
    old: TaskModel, new: TaskModel, source: str, pattern: str, positions: str, period: int | None
) -> LengthenReport:
    """The report, or the error that the models differ where they must not."""
    config, short = new.config, old.config.positions
    longformer, stitched, etc = (
        isinstance(config, kind) for kind in (LongformerConfig, StitchedConfig, EtcConfig)
    )
    radius = getattr(config, "radius", None)
    radius = (radius,) * config.layers if isinstance(radius, int) else radius
    whole = stitched or isinstance(old.config, LongformerConfig)
    near = short if whole else min(radius) + 1 if radius else config.short  # type: ignore[attr-defined]
    most = min(near, short, period or short)
    beyond = sorted({most, *(n for n in (2 * near - 2, short) if most < n <= short)})
    drifts = tuple(drift(old, new, tokens) for tokens in beyond)
    tables = {name: old.get_parameter(name).detach().clone() for name in position_tables(old)}
    for name, table in tables.items():
        rows = new.get_parameter(name)[position_tables(new)[name] :]
        lead = table[: position_tables(old)[name]]
        put(old, name, torch.cat([lead, rows])[: len(table)])
    with without_global_tokens(new):
        error = difference(old, new, most)
    for name, table in tables.items():
        put(old, name, table)
    if not error <= TOLERANCE:
        raise refused(source, f"lengthened, it differs by {error:.1e} on documents of up to {most} tokens")
    family = family_of(new.body.config, {})
    why = family.why_not(new.body.config, old.task) or family.gone.get(old.task)
    head = [] if old.task == "encode" else [f"head ({old.task})"]
    return LengthenReport(
        source=source,
        folder=None,
        task=old.task,
        pattern=pattern,
        short=short,
        to=new.longest,
        positions="kept" if stitched else positions,
        period=(period or short) if positions == "copy" and not stitched else None,
        radius=radius,
        block=getattr(config, "block", None) or None,
        copied=(
            "embeddings",
            "layers",
            *(["decoder"] if isinstance(new.body, Seq2Seq) else []),
            *(["biases by distance"] if config.buckets else []),
            *(["global projections from the local ones"] if longformer and not whole else []),
            *(["global stream from the tokens' one"] if etc else []),
            *head,
        ),
        equal_up_to=most,
        max_difference=error,
        drift=drifts,
        global_tokens=global_tokens(config),
        second=second_level(config),
        loads_in_transformers=why is None,
        why_not=why,
    )


def position_tables(model: TaskModel) -> dict[str, int]:
    """The tables of positions, that of the documents first, and how many rows they have before position 0."""
    if not isinstance(model.body, Seq2Seq):
        return {POSITIONS: model.config.position_offset}
    reading, writing = (POSITIONS.replace("body.", f"body.{side}.") for side in ("encoder", "decoder"))
    return {reading: model.config.position_offset, writing: model.body.config.position_offset}


def _neutral(raw: dict[str, Any]) -> dict[str, Any]:
    """Fields of config.json that mean the same to every family."""
    kept = (
        "bos_token_id",
        "eos_token_id",
        "sep_token_id",
        "id2label",
        "label2id",
        "problem_type",
        *GENERATION,
    )
    return {name: raw[name] for name in kept if name in raw}


def _place(out: Path, *, force: bool) -> Path:
    """The folder to write to, if nothing is lost by it."""
    out = out.expanduser().absolute()
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return out
    if not force or not (out / "config.json").is_file():
        repair = "Pass force=True (--force) to replace a model." if out.is_dir() else ""
        raise bad("out", "a new or empty folder", str(out), repair)
    return out


def _moved(temporary: Path, place: Path) -> None:
    """The finished folder in the place of what was there, in one step for each."""
    aside = temporary.with_suffix(".old")
    if place.exists():
        place.rename(aside)
    temporary.rename(place)
    shutil.rmtree(aside, ignore_errors=True)
