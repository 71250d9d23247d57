"""Reader: a model, its tokenizer and a task, so that text goes in and answers come out."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.builtin import ensure
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError, bad, one_of
from longspan.families.task_model import TaskModel
from longspan.formats.files import inside, read_json
from longspan.lengthening.card import GENERATION, PROMPTS
from longspan.nn.quantized import is_quantized, quantize
from longspan.pipeline.documents import Found
from longspan.pipeline.inputs import PathLike, TextPair, prompts_by_name
from longspan.pipeline.options import Options, ReadingOptions
from longspan.pipeline.run import Pipeline, Results, log
from longspan.shapes import Matrix, Vector
from longspan.tasks import answer, choose, classify, encode, fill, summarize, tag
from longspan.tasks.answer import Answer, Span
from longspan.tasks.base import wrong_task
from longspan.tasks.choose import Choice
from longspan.tasks.classify import Classification, LabelScore
from longspan.tasks.encode import Embedding, Vectors
from longspan.tasks.fill import Guess
from longspan.tasks.registry import task_named, task_of
from longspan.tasks.summarize import GenerationOptions, OnText, Summary
from longspan.tasks.tag import Entity
from longspan.text.tokenizer import Tokenizer

Text = str | TextPair
VectorLike = Vector | Matrix | Tensor | Sequence[float]


class EncodeOptions(ReadingOptions, total=False):
    """How vectors are made, beside how documents are read."""

    pooling: str | None
    normalize: bool | None
    prompt: str | None
    prompt_name: str | None
    show_progress_bar: bool | None
    normalize_embeddings: bool | None
    batch_size: int | None


class Question(TypedDict):
    """A question about a text."""

    question: str
    context: str


class Prompt(TypedDict):
    """A text and what may follow it."""

    prompt: str
    choices: Sequence[str]


def load(
    folder_or_name: str | Path,
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
    **options: Unpack[ReadingOptions],
) -> "Reader":
    """A Reader for a folder or a model of the Hugging Face hub, downloaded as data: none of its code is run.

    "default" is the built-in model, which is fetched and lengthened when it is first needed. `task` is a verb of
    the Reader, or what Hugging Face calls it; None is what the model was made for. `labels` counts or names the
    classes of a new head; `tokenizer` is one, or its folder, if the model's folder has none. precision="int8"
    makes the linear layers so, for reading on a CPU. `options` are those of the Reader.
    """
    if precision not in (None, "int8"):
        raise bad("precision", "None or 'int8'", precision, "Use dtype= for floating-point types.")
    Options().but(**options)  # a misspelled option is an error before anything is downloaded
    ensure(folder_or_name, local_files_only=local_files_only)
    loaded = load_model(
        folder_or_name,
        None if task is None else task_named(task).name,
        labels=labels,
        dtype=dtype,
        ignore_mismatched_sizes=ignore_mismatched_sizes,
        revision=revision,
        cache_dir=cache_dir,
        token=token,
        local_files_only=local_files_only,
        trust_remote_code=trust_remote_code,
    )
    for note in loaded.notes:
        log.warning("%s: %s", folder_or_name, note)
    prompts = _stated(loaded.folder, PROMPTS)
    has_decoder = loaded.model.backbone.config.has_decoder
    model = loaded.model if device is None else loaded.model.to(device)
    if precision == "int8":
        quantize(model)
    return Reader(
        model,
        _tokenizer(loaded.folder if tokenizer is None else tokenizer, loaded.model.config.vocab_size),
        labels=loaded.labels,
        problem=loaded.problem,
        prompts=prompts.get("prompts"),
        default_prompt_name=prompts.get("default_prompt_name"),
        config=loaded.config,
        generation=_stated(loaded.folder, GENERATION) if has_decoder else {},
        **options,
    )


class Reader:
    """Text in, answers out: documents of any length, packed without padding, results in the given order.

    A text gives one result, a list gives a list (summarize: always a list). A result says how many tokens were
    read (`n_tokens`), how many were not (`truncated`), and in how many `windows`: keys of a dict, or attributes
    of a list of results. `options` are the fields of longspan.pipeline.options.Options; every verb takes them
    too, for one call.
    """

    def __init__(
        self,
        model: TaskModel,
        tokenizer: Tokenizer,
        *,
        labels: Sequence[str] = (),
        problem: str | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
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
        self.problem = None if problem is None else one_of("problem", problem, classify.PROBLEMS)
        self.prompts, self.default_prompt_name = prompts_by_name(prompts), default_prompt_name
        if default_prompt_name is not None:
            one_of("default_prompt_name", default_prompt_name, self.prompts)
        self.config, self.generation = dict(config or {}), dict(generation or {})
        self.options = Options().but(**options)

    @overload
    def encode(
        self, texts: str, *, convert_to_tensor: Literal[False] = ..., **options: Unpack[EncodeOptions]
    ) -> Vector: ...
    @overload
    def encode(  # type: ignore[overload-overlap]
        self,
        texts: Iterable[str],
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[EncodeOptions],
    ) -> Matrix: ...
    @overload
    def encode(
        self,
        texts: str | Iterable[str],
        *,
        convert_to_tensor: Literal[True],
        **options: Unpack[EncodeOptions],
    ) -> Tensor: ...
    def encode(
        self,
        texts: str | Iterable[str],
        *,
        convert_to_tensor: bool = False,
        **options: Unpack[EncodeOptions],
    ) -> Vector | Matrix | Tensor:
        """Vectors, as sentence-transformers gives them: (C,) for a text, (B, C) for a list, in float32.

        `pooling` is "mean", "first", "max" or, for some models, "sif"; None is what the model was made for.
        normalize=True gives vectors of length 1. Windows of a document are averaged, weighted by tokens
        (pooling="max": their maximum). `prompt`, or the model's own of the name `prompt_name`, is put before each
        text. `batch_size` is accepted and not needed, since batches are filled by tokens.
        """
        results = self._embeddings(texts, ("sentence_embedding",), options)
        vectors = encode.stacked(results.items, self.model.config.width)
        chosen: Vector | Matrix = vectors[0] if results.single else vectors
        return torch.from_numpy(chosen) if convert_to_tensor else chosen

    @overload
    def encode_query(
        self, texts: str, *, convert_to_tensor: Literal[False] = ..., **options: Unpack[EncodeOptions]
    ) -> Vector: ...
    @overload
    def encode_query(  # type: ignore[overload-overlap]
        self,
        texts: Iterable[str],
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[EncodeOptions],
    ) -> Matrix: ...
    @overload
    def encode_query(
        self,
        texts: str | Iterable[str],
        *,
        convert_to_tensor: Literal[True],
        **options: Unpack[EncodeOptions],
    ) -> Tensor: ...
    def encode_query(
        self,
        texts: str | Iterable[str],
        *,
        convert_to_tensor: bool = False,
        **options: Unpack[EncodeOptions],
    ) -> Vector | Matrix | Tensor:
        """encode() with the prompt that the model has for queries, if it has one.

        A model that reads block by block takes a query as one block, and all its words count alike.
        """
        how, _ = encode.pooling_of(self.model, None, None)
        usual: EncodeOptions = {"whole": True, "prompt_name": self.query_prompt_name}
        if how == "sif":
            usual["pooling"] = "mean"
        changed: EncodeOptions = {**usual, **options}
        return self.encode(texts, convert_to_tensor=convert_to_tensor, **changed)  # type: ignore[call-overload, no-any-return]

    @overload
    def encode_document(
        self, texts: str, *, convert_to_tensor: Literal[False] = ..., **options: Unpack[EncodeOptions]
    ) -> Vector: ...
    @overload
    def encode_document(  # type: ignore[overload-overlap]
        self,
        texts: Iterable[str],
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[EncodeOptions],
    ) -> Matrix: ...
    @overload
    def encode_document(
        self,
        texts: str | Iterable[str],
        *,
        convert_to_tensor: Literal[True],
        **options: Unpack[EncodeOptions],
    ) -> Tensor: ...
    def encode_document(
        self,
        texts: str | Iterable[str],
        *,
        convert_to_tensor: bool = False,
        **options: Unpack[EncodeOptions],
    ) -> Vector | Matrix | Tensor:
        """encode() with the prompt that the model has for documents, if it has one."""
        changed: EncodeOptions = {"prompt_name": self.document_prompt_name, **options}
        return self.encode(texts, convert_to_tensor=convert_to_tensor, **changed)  # type: ignore[call-overload, no-any-return]

    @overload
    def encode_tokens(self, texts: str, **options: Unpack[EncodeOptions]) -> Matrix: ...
    @overload
    def encode_tokens(self, texts: Iterable[str], **options: Unpack[EncodeOptions]) -> list[Matrix]: ...
    def encode_tokens(
        self, texts: str | Iterable[str], **options: Unpack[EncodeOptions]
    ) -> Matrix | list[Matrix]:
        """One vector for each token, (n, C)."""
        results = self._embeddings(texts, ("token_embeddings",), options)
        rows = [one["token_embeddings"] for one in results.items]
        return rows[0] if results.single else rows

    @overload
    def encode_with_details(
        self, texts: str, *, tokens: bool = ..., **options: Unpack[EncodeOptions]
    ) -> Embedding: ...
    @overload
    def encode_with_details(
        self, texts: Iterable[str], *, tokens: bool = ..., **options: Unpack[EncodeOptions]
    ) -> list[Embedding]: ...
    def encode_with_details(
        self, texts: str | Iterable[str], *, tokens: bool = False, **options: Unpack[EncodeOptions]
    ) -> Embedding | list[Embedding]:
        """{sentence_embedding, n_tokens, truncated, windows}; with `tokens` also token_embeddings."""
        kinds = encode.EVERYTHING if tokens else ("sentence_embedding",)
        return self._embeddings(texts, kinds, options).unwrap()

    @staticmethod
    def similarity(a: VectorLike, b: VectorLike) -> Tensor:
        """The cosine of each vector of `a` (A, C) with each of `b` (B, C), as a tensor (A, B)."""
        left, right = (torch.atleast_2d(torch.as_tensor(vectors)).float() for vectors in (a, b))
        return F.normalize(left) @ F.normalize(right).T

    @overload
    def classify(
        self, texts: Text, *, top_k: Literal[1] = ..., **options: Unpack[ReadingOptions]
    ) -> Classification: ...
    @overload
    def classify(
        self, texts: Iterable[Text], *, top_k: Literal[1] = ..., **options: Unpack[ReadingOptions]
    ) -> list[Classification]: ...
    @overload
    def classify(
        self, texts: Text, *, top_k: int | None, **options: Unpack[ReadingOptions]
    ) -> Found[LabelScore]: ...
    @overload
    def classify(
        self, texts: Iterable[Text], *, top_k: int | None, **options: Unpack[ReadingOptions]
    ) -> list[Found[LabelScore]]: ...
    def classify(
        self, texts: Text | Iterable[Text], *, top_k: int | None = 1, **options: Unpack[ReadingOptions]
    ) -> object:
        """{label, score, n_tokens, truncated, windows} for each text; a list if top_k is not 1.

        top_k=None gives all labels. A pair of texts is {"text": ..., "text_pair": ...}. The score is a
        probability (softmax; sigmoid for one label or labels that do not exclude each other), or the number
        itself for a regression. Windows of a document are averaged by probability.
        """
        pipeline = self._pipeline("classify")
        return classify.classify(pipeline, texts, self.labels, self.problem, top_k, options).unwrap()

    @overload
    def tag(
        self,
        texts: str,
        *,
        aggregation_strategy: str = ...,
        ignore_labels: Sequence[str] = ...,
        **options: Unpack[ReadingOptions],
    ) -> Found[Entity]: ...
    @overload
    def tag(
        self,
        texts: Iterable[str],
        *,
        aggregation_strategy: str = ...,
        ignore_labels: Sequence[str] = ...,
        **options: Unpack[ReadingOptions],
    ) -> list[Found[Entity]]: ...
    def tag(
        self,
        texts: str | Iterable[str],
        *,
        aggregation_strategy: str = "none",
        ignore_labels: Sequence[str] = ("O",),
        **options: Unpack[ReadingOptions],
    ) -> object:
        """For each text a list of {entity, score, index, word, start, end}, or of entities of several tokens.

        These are {entity_group, score, word, start, end}, with aggregation_strategy "simple", "first",
        "average" or "max". start and end count characters. A token of several windows is taken from the one
        where it stands most centrally.
        """
        pipeline = self._pipeline("tag")
        strategy = aggregation_strategy
        return tag.tag(pipeline, texts, self.labels, strategy, ignore_labels, options).unwrap()

    @overload
    def answer(
        self,
        question: str,
        context: str,
        *,
        top_k: Literal[1] = ...,
        max_answer_len: int = ...,
        handle_impossible_answer: bool = ...,
        **options: Unpack[ReadingOptions],
    ) -> Answer: ...
    @overload
    def answer(
        self,
        question: str | Iterable[str] | Iterable[Question],
        context: str | Iterable[str] | None = ...,
        *,
        top_k: Literal[1] = ...,
        max_answer_len: int = ...,
        handle_impossible_answer: bool = ...,
        **options: Unpack[ReadingOptions],
    ) -> list[Answer]: ...
    @overload
    def answer(
        self,
        question: str,
        context: str,
        *,
        top_k: int,
        max_answer_len: int = ...,
        handle_impossible_answer: bool = ...,
        **options: Unpack[ReadingOptions],
    ) -> Found[Span]: ...
    @overload
    def answer(
        self,
        question: str | Iterable[str] | Iterable[Question],
        context: str | Iterable[str] | None = ...,
        *,
        top_k: int,
        max_answer_len: int = ...,
        handle_impossible_answer: bool = ...,
        **options: Unpack[ReadingOptions],
    ) -> list[Found[Span]]: ...
    def answer(
        self,
        question: str | Iterable[str] | Iterable[Question],
        context: str | Iterable[str] | None = None,
        *,
        top_k: int = 1,
        max_answer_len: int = 30,
        handle_impossible_answer: bool = False,
        **options: Unpack[ReadingOptions],
    ) -> object:
        """{score, start, end, answer, n_tokens, truncated, windows}; a list of answers for top_k > 1.

        Two texts, two lists, one of each, or a list of {"question": ..., "context": ...}. answer is
        context[start:end], at most `max_answer_len` tokens long, and "" where there is none (only with
        handle_impossible_answer=True). Windows of a document compete in one softmax.
        """
        return answer.answer(
            self._pipeline("answer"),
            question,
            context,
            top_k=top_k,
            max_answer_len=max_answer_len,
            handle_impossible_answer=handle_impossible_answer,
            options=options,
        ).unwrap()

    @overload
    def choose(self, prompt: str, choices: Iterable[str], **options: Unpack[ReadingOptions]) -> Choice: ...
    @overload
    def choose(
        self,
        prompt: Iterable[str] | Iterable[Prompt],
        choices: Iterable[Iterable[str]] | None = ...,
        **options: Unpack[ReadingOptions],
    ) -> list[Choice]: ...
    def choose(
        self,
        prompt: str | Iterable[str] | Iterable[Prompt],
        choices: Iterable[str] | Iterable[Iterable[str]] | None = None,
        **options: Unpack[ReadingOptions],
    ) -> Choice | list[Choice]:
        """{index, choice, score, scores, n_tokens, truncated, windows}: which choice fits the prompt best.

        A text and a list of choices, two lists, or a list of {"prompt": ..., "choices": [...]}. Each choice is
        read beside the prompt; n_tokens and truncated are sums over the choices.
        """
        return choose.choose(self._pipeline("choose"), prompt, choices, options).unwrap()

    @overload
    def fill(
        self, texts: str, *, top_k: int = ..., **options: Unpack[ReadingOptions]
    ) -> Found[Guess] | Found[list[Guess]]: ...
    @overload
    def fill(
        self, texts: Iterable[str], *, top_k: int = ..., **options: Unpack[ReadingOptions]
    ) -> list[Found[Guess] | Found[list[Guess]]]: ...
    def fill(
        self, texts: str | Iterable[str], *, top_k: int = 5, **options: Unpack[ReadingOptions]
    ) -> object:
        """For each text a list of {score, token, token_str, sequence}, or one for each of several masks."""
        return fill.fill(self._pipeline("fill"), texts, top_k, options).unwrap()

    def summarize(
        self,
        texts: str | PathLike | Iterable[str | PathLike],
        *,
        query: str | Iterable[str] | None = None,
        stream: OnText | None = None,
        seed: int | None = None,
        **options: Unpack[GenerationOptions],
    ) -> list[Summary]:
        """[{summary_text, n_tokens, truncated}], one for each document; a list even for a single one.

        A document is a text, or a pathlib.Path that is read; several are a list. `query`, one text or one for
        each document, is put before it. `stream` is called with the pieces of a single summary as soon as
        they are certain, and ends it by returning False. Options of generation are transformers' (num_beams,
        max_new_tokens, min_new_tokens, length_penalty, no_repeat_ngram_size, do_sample, ...); what is not given
        is as the model's folder has it, else 4 beams and at most 256 tokens. With num_return_sequences > 1 there
        are `summaries`, too, whose first is `summary_text`. What is sampled depends on `seed` and the document.
        """
        style = self.config, self.generation
        pipeline = self._pipeline("summarize")
        return summarize.summarize(pipeline, texts, query, style, stream=stream, seed=seed, options=options)

    def save(self, folder: str | Path) -> None:
        """Write the model and the tokenizer, so that longspan.load and transformers can read them."""
        labels = self.labels or None
        save_model(self.model, folder, labels=labels, problem=self.problem, extra=self.config)
        self.tokenizer.save(folder, types=self.model.config.reads_token_types(self.model.architecture))
        if self.prompts:
            stated = {"prompts": self.prompts, "default_prompt_name": self.default_prompt_name}
            (Path(folder) / PROMPTS).write_text(json.dumps(stated, indent=2) + "\n", encoding="utf-8")
        if self.generation:
            text = json.dumps(self.generation, indent=2, ensure_ascii=False)
            (Path(folder) / GENERATION).write_text(text + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        config, weight = self.model.config, next(self.model.parameters())
        kind, dtype = type(self.model.backbone).__name__, str(weight.dtype).removeprefix("torch.")
        size = f"{config.layers} layers, {config.width} wide, up to {self.model.longest} tokens"
        dtype = "int8" if is_quantized(self.model) else dtype
        where = f"{dtype} on {weight.device}, overflow={self.options.overflow!r}"
        return f"Reader({self.task!r}, {kind} of {size}, {where})"

    def _pipeline(self, verb: str) -> Pipeline:
        """What the verb runs on; every model can encode."""
        if verb not in (self.task, encode.ENCODE.name):
            raise wrong_task(verb, self.task)
        return Pipeline(self.model, self.tokenizer, self.options)

    def _embeddings(
        self, texts: object, kinds: tuple[str, ...], options: EncodeOptions
    ) -> Results[Embedding]:
        rest: dict[str, Any] = dict(options)
        pooling, normalize = rest.pop("pooling", None), rest.pop("normalize", None)
        alias, shown = rest.pop("normalize_embeddings", None), rest.pop("show_progress_bar", None)
        before = self._prompt(rest.pop("prompt", None), rest.pop("prompt_name", None))
        rest.pop("batch_size", None)
        if shown is not None:
            rest["progress"] = shown
        how = encode.pooling_of(self.model, pooling, normalize if alias is None else alias)
        return encode.encode(self._pipeline("encode"), texts, Vectors(kinds, *how), before, rest)

    @property
    def query_prompt_name(self) -> str | None:
        """The name of the prompt that the model has for queries, if it has one."""
        return "query" if "query" in self.prompts else None

    @property
    def document_prompt_name(self) -> str | None:
        """The name of the prompt that the model has for documents, if it has one."""
        return next((name for name in ("document", "passage", "corpus") if name in self.prompts), None)

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        if prompt is not None:
            return prompt
        name = self.default_prompt_name if name is None else name
        return "" if name is None else self.prompts[one_of("prompt_name", name, self.prompts)]


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
