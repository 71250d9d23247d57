"""Load: a folder or a model of the hub becomes a Reader."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Unpack

import torch

from longspan.builtin import ensure
from longspan.checkpoints.load import LoadedModel, load_model
from longspan.checkpoints.save import GENERATION, PROMPTS
from longspan.errors import InputError, bad
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import settled
from longspan.formats.files import inside, read_json
from longspan.hub import local_folder
from longspan.nn.quantized import quantize
from longspan.pipeline.options import Options, ReadingOptions
from longspan.pipeline.run import log
from longspan.reader import Reader
from longspan.tasks.cross_encoder import with_activation
from longspan.tasks.registry import task_named
from longspan.tasks.similarity import MAX_SIM
from longspan.tasks.style import unfollowed
from longspan.text.tokenizer import Tokenizer
from longspan.text_model import placed

SAVE_IT = "Save a tokenizer of transformers with save_pretrained(folder), and give the folder."


def load(
    model: str | Path,
    task: str | None = None,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    precision: str | None = None,
    labels: int | Sequence[str] | None = None,
    tokenizer: Tokenizer | str | Path | None = None,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
    trust_remote_code: bool = False,
    ignore_mismatched_sizes: bool = False,
    adapter: str | Path | None = None,
    **options: Unpack[ReadingOptions],
) -> Reader:
    """A Reader for a folder or a model of the Hugging Face hub, downloaded as data: none of its code is run.

    "default" is the built-in model, which is fetched and lengthened when it is first needed; else `model` is
    a folder if it exists, a name that `longspan models` lists, or a name on the hub, in this order. `task` is
    a verb of the Reader, or what Hugging Face calls it; None is what the model was made for. `labels` counts
    or names the classes of a new head; `tokenizer` is one, or its folder, if the model's folder has none.
    precision="int8" makes the linear layers so, for reading on a CPU. `adapter` is what is merged into the
    weights: the folder of an adapter that peft or save_adapter() wrote, or the name of one, where the file of
    the model holds several. `options` are those of the Reader.
    """
    Options().but(**options)  # a mistake is an error before anything is downloaded
    _check(precision, tokenizer)
    place = None if device is None else placed(device)
    ensure(model, local_files_only=local_files_only)
    with _one_save(model):
        loaded = load_model(
            model,
            None if task is None else task_named(task).name,
            labels=labels,
            dtype=dtype,
            ignore_mismatched_sizes=ignore_mismatched_sizes,
            adapter=adapter,
            revision=revision,
            cache_dir=cache_dir,
            token=token,
            local_files_only=local_files_only,
            trust_remote_code=trust_remote_code,
        )
        prompts, generation = _settings(loaded)
        words = _tokenizer(loaded.folder if tokenizer is None else tokenizer, loaded.model.config.vocab_size)
    for note in (*loaded.notes, *_unfollowed(loaded, generation)):
        log.warning("%s: %s", model, note)
    return Reader(
        _placed(loaded.model, place, precision),
        words,
        labels=loaded.labels,
        problem=loaded.problem,
        config=with_activation(loaded.config, prompts),
        generation=generation,
        **_of_vectors(prompts),
        **options,
    )


def _one_save(name: str | Path) -> AbstractContextManager[None]:
    """Inside, all files of a local folder are of one save."""
    home = local_folder(name)
    return nullcontext() if home is None else settled(home)


def _unfollowed(loaded: LoadedModel, generation: dict[str, Any]) -> list[str]:
    """What to say of a folder's settings that have no effect."""
    writes = isinstance(loaded.model, Seq2SeqLM)
    settings = unfollowed(loaded.config, generation) if writes else {}
    named = ", ".join(f"{name}={value!r:.80}" for name, value in settings.items())
    return [f"Longspan has no such generation settings, so they have no effect: {named}."] if named else []


def _check(precision: object, tokenizer: object) -> None:
    if precision not in (None, "int8"):
        raise bad("precision", "None or 'int8'", precision, "Use dtype= for floating-point types.")
    if not isinstance(tokenizer, Tokenizer | str | os.PathLike | None):
        raise bad("tokenizer", "longspan's Tokenizer, or a folder", type(tokenizer).__name__, SAVE_IT)


def _placed(model: TaskModel, place: torch.device | None, precision: str | None) -> TaskModel:
    """The model on its device, and in its precision."""
    if place is not None:
        model.to(place)
    if precision == "int8":
        quantize(model)
    return model


def _settings(loaded: LoadedModel) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the folder says of prompts, and of generation where the model writes."""
    writes = loaded.model.backbone.config.has_decoder
    return _stated(loaded.folder, PROMPTS), _stated(loaded.folder, GENERATION) if writes else {}


def _of_vectors(prompts: dict[str, Any]) -> dict[str, Any]:
    """What a Reader takes of the folder's prompts and similarity."""
    names = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
    known = {name: prompts[name] for name in names if name in prompts}
    if known.get("similarity_fn_name") == MAX_SIM:  # which compares tokens, not vectors of texts
        del known["similarity_fn_name"]
    return known


def _stated(folder: Path, name: str) -> dict[str, Any]:
    """What a file of the folder says, if it is there."""
    return read_json(inside(folder, name)) if (folder / name).is_file() else {}


def _tokenizer(source: Tokenizer | str | Path, vocabulary: int) -> Tokenizer:
    if isinstance(source, Tokenizer):
        return source
    try:
        return Tokenizer.from_folder(source, vocab_size=vocabulary)
    except InputError as error:
        repair = "Put the tokenizer's files there, or pass tokenizer=, a folder that has them."
        raise InputError(f"{error} {repair}") from error
