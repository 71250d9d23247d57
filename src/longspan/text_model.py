"""TextModel: a model with its tokenizer, its prompts and how it reads; what a Reader is beside its verbs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Self, Unpack

import torch
from torch import Tensor

from longspan import html
from longspan.checkpoints.adapters import save_adapter
from longspan.checkpoints.lora import LoraOptions, add_lora
from longspan.checkpoints.save import CONFIG, GENERATION, PROMPTS, is_reader_file, write_model
from longspan.errors import bad, one_of, whole
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import as_json, replaced_files
from longspan.nn.lora import merge_and_unload
from longspan.nn.quantized import is_quantized
from longspan.pipeline import inputs
from longspan.pipeline.options import Options, ReadingOptions
from longspan.pipeline.run import Pipeline
from longspan.tasks import similarity
from longspan.tasks.base import wrong_task
from longspan.tasks.classify import PROBLEMS
from longspan.tasks.encode import ENCODE, pooling_of, vector_size
from longspan.tasks.registry import task_of
from longspan.tasks.similarity import SIMILARITIES, VectorLike
from longspan.text.tokenizer import Tokenizer


class ModelCardData:
    """Where evaluators of sentence-transformers leave their results."""

    def __init__(self) -> None:
        self.results: dict[str, dict[str, float]] = {}
        "By the name of the evaluator: what it measured last."

    def set_evaluation_metrics(
        self, evaluator: object, metrics: Mapping[str, float], epoch: int = 0, step: int = 0
    ) -> None:
        """Keep what an evaluator measured."""
        name = getattr(evaluator, "name", "") or type(evaluator).__name__
        self.results[str(name)] = dict(metrics)


class TextModel:
    """A model with its tokenizer: the facts that sentence-transformers and its tools ask a model for."""

    def __init__(
        self,
        model: TaskModel,
        tokenizer: Tokenizer,
        *,
        labels: Sequence[str] = (),
        problem: str | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: str | None = None,
        truncate_dim: int | None = None,
        config: Mapping[str, object] | None = None,
        generation: Mapping[str, object] | None = None,
        **options: Unpack[ReadingOptions],
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        task = task_of(model.architecture)
        self.task = task.name
        count = len(model.head.get_parameter("out.bias")) if task.has_labels else 0
        self.labels = tuple(labels) or tuple(f"LABEL_{i}" for i in range(count))
        if len(self.labels) != count:
            raise bad("labels", f"{count} names, as many as the model has", f"{len(self.labels)} names")
        self.problem = None if problem is None else one_of("problem", problem, PROBLEMS)
        self.prompts, self.default_prompt_name = inputs.prompts_by_name(prompts), default_prompt_name
        if default_prompt_name is not None:
            one_of("default_prompt_name", default_prompt_name, self.prompts)
        self.similarity_fn_name = "cosine" if similarity_fn_name is None else similarity_fn_name
        self.truncate_dim = None if truncate_dim is None else self._dimensions(truncate_dim)
        self.model_card_data = ModelCardData()
        self.config, self.generation = dict(config or {}), dict(generation or {})
        self.options = Options().but(**options)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def to(self, device: str | torch.device) -> Self:
        """Move the model; the Reader itself."""
        self.model.to(placed(device))
        return self

    @property
    def max_seq_length(self) -> int:
        """Tokens that are read at once: the limit that was set, else what the model has positions for.

        To set it is to set the option `limit`. It cuts nothing in silence: a longer text is an error, unless
        the option `overflow` is "window" or "truncate".
        """
        return self.model.longest if self.options.limit is None else self.options.limit

    @max_seq_length.setter
    def max_seq_length(self, tokens: int | None) -> None:
        most = self.model.longest
        limit = None if tokens is None else whole("max_seq_length", tokens, 1, most=most)
        self.options = self.options.but(limit=limit)

    def get_max_seq_length(self) -> int:
        """The same as `max_seq_length`, as sentence-transformers also has it."""
        return self.max_seq_length

    def get_embedding_dimension(self) -> int:
        """How many dimensions the vectors of encode() have."""
        return vector_size(self.model) if self.truncate_dim is None else self.truncate_dim

    def get_sentence_embedding_dimension(self) -> int:
        """The same as get_embedding_dimension(), by the name it had before sentence-transformers 6."""
        return self.get_embedding_dimension()

    def tokenize(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """Tokens as models of transformers take them: {input_ids, attention_mask}, padded, never cut.

        With token_type_ids, if the model reads them.
        """
        taken = inputs.texts("texts", texts)
        encodings = self.tokenizer.encode_many(taken.items)
        longest = max(map(len, encodings), default=0)
        pad = self.tokenizer.pad or 0
        ids = torch.full((len(encodings), longest), pad)
        mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding)] = torch.from_numpy(encoding.ids.copy())
            types[row, : len(encoding)] = torch.from_numpy(encoding.types.copy())
            mask[row, : len(encoding)] = 1
        made = {"input_ids": ids, "attention_mask": mask}
        typed = self.model.config.reads_token_types(self.model.architecture)
        return made | {"token_type_ids": types} if typed else made

    @property
    def similarity_fn_name(self) -> str:
        """How similarity() compares: "cosine", "dot", "euclidean" or "manhattan"; can be set."""
        return self._similarity

    @similarity_fn_name.setter
    def similarity_fn_name(self, name: str | None) -> None:
        name = getattr(name, "value", name)  # sentence-transformers has an enumeration
        self._similarity = "cosine" if name is None else one_of("similarity_fn_name", name, SIMILARITIES)

    def similarity(self, a: VectorLike, b: VectorLike) -> Tensor:
        """How alike each vector of `a` (A, C) is to each of `b` (B, C), as a tensor (A, B)."""
        return similarity.all_pairs(self.similarity_fn_name, a, b)

    def similarity_pairwise(self, a: VectorLike, b: VectorLike) -> Tensor:
        """How alike each vector of `a` (A, C) is to the one of `b` in its place, as a tensor (A,)."""
        return similarity.row_by_row(self.similarity_fn_name, a, b)

    @property
    def query_prompt_name(self) -> str | None:
        """The name of the prompt that the model has for queries, if it has one."""
        return "query" if "query" in self.prompts else None

    @property
    def document_prompt_name(self) -> str | None:
        """The name of the prompt that the model has for documents, if it has one."""
        return next((name for name in ("document", "passage", "corpus") if name in self.prompts), None)

    def save(self, folder: str | Path) -> None:
        """Write the model and the tokenizer, so that longspan.load and transformers can read them.

        They take the place of a model that is there, all files or none, even if the process is killed; files
        that do not belong to it are kept. What add_lora() let be trained is merged into the weights there.
        """
        labels, token_types = (
            self.labels or None,
            self.model.config.reads_token_types(self.model.architecture),
        )
        with replaced_files(Path(folder), owns=is_reader_file, last=CONFIG) as fresh:
            write_model(self.model, fresh, labels=labels, problem=self.problem, extra=self.config)
            self.tokenizer.write(fresh, token_types=token_types)
            if settings := self._settings():
                (fresh / PROMPTS).write_text(as_json(settings))
            if self.generation:
                (fresh / GENERATION).write_text(as_json(self.generation))

    def add_lora(self, **options: Unpack[LoraOptions]) -> tuple[str, ...]:
        """Freeze the model and let changes of low rank be learned, by peft's options; the layers changed.

        By default all linear layers of the backbone have one (r=8, lora_alpha=16), and the head is trained.
        """
        return add_lora(self.model, config=self.config, **options)

    def save_adapter(self, folder: str | Path, *, base: str | None = None) -> None:
        """Write what add_lora() lets be trained, so that longspan.load(..., adapter=) and peft can read it.

        `base` is the name or folder of the model that it changes.
        """
        save_adapter(self.model, folder, base=base, config=self.config)

    def merge_and_unload(self) -> Self:
        """Make what add_lora() let be trained part of the weights, for good; the Reader itself."""
        merge_and_unload(self.model)
        return self

    def _repr_html_(self) -> str:
        config, how = self.model.config, pooling_of(self.model, None, None)
        facts: list[tuple[str, object]] = [
            ("task", self.task),
            ("model", f"{type(self.model.backbone).__name__}, {config.layers} layers, {config.width} wide"),
            ("reads at once", f"{self.max_seq_length:,} tokens, overflow={self.options.overflow!r}"),
            ("vectors", f"{self.get_embedding_dimension()} wide, pooling {how[0]}{', length 1' * how[1]}"),
            ("numbers", f"{self._numbers} on {self.device}"),
        ]
        for name, values in (("labels", self.labels), ("prompts", tuple(self.prompts))):
            if values:
                facts.append((name, shorten(", ".join(values), 120, placeholder=" ...")))
        return html.table("Reader", facts)

    def __repr__(self) -> str:
        config, kind = self.model.config, type(self.model.backbone).__name__
        size = f"{config.layers} layers, {config.width} wide, up to {self.model.longest} tokens"
        where = f"{self._numbers} on {self.device}, overflow={self.options.overflow!r}"
        return f"Reader({self.task!r}, {kind} of {size}, {where})"

    @property
    def _numbers(self) -> str:
        """What the weights are kept in."""
        dtype = str(next(self.model.parameters()).dtype).removeprefix("torch.")
        return "int8" if is_quantized(self.model) else dtype

    def _settings(self) -> dict[str, object]:
        """What sentence-transformers keeps of a model beside its modules, where it says something."""
        settings: dict[str, object] = {}
        if self.prompts:
            settings |= {"prompts": self.prompts, "default_prompt_name": self.default_prompt_name}
        if self.similarity_fn_name != "cosine":
            settings["similarity_fn_name"] = self.similarity_fn_name
        if self.truncate_dim is not None:
            settings["truncate_dim"] = self.truncate_dim
        return settings

    def _dimensions(self, truncate_dim: object) -> int:
        return whole("truncate_dim", truncate_dim, 1, most=vector_size(self.model))

    def _pipeline(self, verb: str) -> Pipeline:
        """What the verb runs on; every model can encode."""
        if verb not in (self.task, ENCODE.name):
            raise wrong_task(verb, self.task)
        return Pipeline(self.model, self.tokenizer, self.options)

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        if prompt is not None:
            return inputs.string("prompt", prompt)
        name = self.default_prompt_name if name is None else name
        if name is not None and not self.prompts:
            raise bad(
                "prompt_name", "left out, as the model has no prompts", name, "Give the text as prompt=."
            )
        return "" if name is None else self.prompts[one_of("prompt_name", name, self.prompts)]


def placed(device: str | torch.device) -> torch.device:
    """The device, if this machine has it."""
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, TypeError, AssertionError) as error:  # AssertionError: torch has no CUDA at all
        reason = str(error).partition("\n")[0].rstrip(".")
        requirement = 'a device that torch has here, such as "cpu"'
        raise bad("device", requirement, str(device), f"torch says: {reason}.") from None
    return place
