"""Reader: a model, its tokenizer and a task, so that text goes in and answers come out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.builtin import ensure
from longspan.checkpoints.card import GENERATION, PROMPTS
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError, bad, whole
from longspan.formats.files import inside, read_json
from longspan.models.task import TaskModel
from longspan.models.writer import Writer
from longspan.nn.quantised import is_quantised, quantise
from longspan.shapes import FloatArray
from longspan.tasks import answer, choose, classify, encode, fill, inputs, summarise, tag
from longspan.tasks.documents import Document, Found, Reading, prepared
from longspan.tasks.options import Options
from longspan.tasks.run import Step, log, run, uses_types
from longspan.tasks.table import TASKS, one_of, task_named, wrong_task
from longspan.text.tokenizer import Encoding, Tokenizer


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
    **options: Any,
) -> "Reader":
    """A Reader for a folder or a model of the Hugging Face hub, downloaded as data: no code of it is run.

    "default" is the built-in model, which is fetched and lengthened when it is first needed.
    `task` is encode, fill, classify, tag, answer, choose or summarise, or what Hugging Face calls it; None is
    what the model was made for. `labels` counts or names the classes of a new head; `tokenizer` is one, or
    its folder, if the model's folder has none. precision="int8" makes the linear layers so, for reading on a
    CPU. `options` are those of the Reader: overflow, limit, overlap, budget, deterministic, global_tokens,
    progress.
    """
    if precision not in (None, "int8"):
        raise bad("precision", "None or 'int8'", precision, "Use dtype= for floating-point types.")
    Options().but(**options)  # a misspelt option is told before anything is downloaded
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
    stated = _stated(loaded.folder, PROMPTS)
    generation = _stated(loaded.folder, GENERATION) if loaded.model.task == "summarise" else {}
    model = loaded.model if device is None else loaded.model.to(device)
    if precision == "int8":
        quantise(model)
    return Reader(
        model,
        _tokenizer(loaded.folder if tokenizer is None else tokenizer, loaded.model.config.vocab_size),
        labels=loaded.labels,
        problem=loaded.problem,
        prompts=stated.get("prompts"),
        default_prompt_name=stated.get("default_prompt_name"),
        config=loaded.config,
        generation=generation,
        **options,
    )


class Reader:
    """Text in, answers out: documents of any length, packed without padding, results in the given order.

    A text gives one result, a list gives a list (summarise: always a list). A result says how many tokens
    were read (`n_tokens`), how many were not (`truncated`), in how many `windows`: keys of a dict, or
    attributes of a list of findings.
    `options` are the fields of longspan.tasks.options.Options; every method takes them too, for one call.
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
        config: Mapping[str, Any] | None = None,
        generation: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.model, self.tokenizer, self.task = model, tokenizer, model.task
        count = len(model.head.get_parameter("out.bias")) if self.task in ("classify", "tag") else 0
        self.labels = tuple(labels) or tuple(f"LABEL_{i}" for i in range(count))
        if len(self.labels) != count:
            raise bad("labels", f"{count} names, as many as the model has", f"{len(self.labels)} names")
        self.problem = None if problem is None else one_of("problem", problem, classify.PROBLEMS)
        self.prompts, self.default_prompt_name = inputs.prompts_by_name(prompts), default_prompt_name
        if default_prompt_name is not None:
            one_of("default_prompt_name", default_prompt_name, self.prompts)
        self.config, self.generation = dict(config or {}), dict(generation or {})
        self.options = Options().but(**options)

    def encode(
        self,
        texts: Any,
        *,
        pooling: str | None = None,
        normalise: bool | None = None,
        output: str | None = "sentence",
        details: bool = False,
        convert_to_tensor: bool = False,
        prompt: str | None = None,
        prompt_name: str | None = None,
        show_progress_bar: bool | None = None,
        normalize_embeddings: bool | None = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> Any:
        """Vectors, as sentence-transformers gives them: (C,) for a text, (B, C) for a list, in float32.

        pooling is "mean", "first", "max" or, for some models, "salient", None what the model was made for;
        normalise=True gives them length 1. output="tokens" gives one vector for each token instead, (n, C).
        details=True gives a dict with "sentence_embedding" or "token_embeddings" (output=None: both),
        n_tokens, truncated and windows.
        Windows of a document are averaged, weighted by tokens (pooling="max": their maximum). `prompt`, or
        the model's own of the name `prompt_name`, is put before each text. `normalize_embeddings` is another
        name for normalise; `batch_size` is accepted and not needed, since batches are filled by tokens.
        """
        normalise = normalise if normalize_embeddings is None else normalize_embeddings
        given = inputs.texts("texts", texts)
        how, unit = encode.pooling_of(self.model, pooling, normalise)
        wanted = encode.wanted(output)
        if show_progress_bar is not None:
            options["progress"] = show_progress_bar
        before = self._prompt(prompt, prompt_name)
        encodings = self.tokenizer.encode_many([before + text for text in given.items])
        read = self._read("encode", given.names, encodings, encode.states(how, wanted), options)
        results = [encode.decode(*found, wanted, how, unit) for found in read]
        if not details and output is not None:
            return encode.bare(results, wanted[0], self.model.config.width, given.single, convert_to_tensor)
        results = encode.tensors(results) if convert_to_tensor else results
        return results[0] if given.single else results

    def encode_query(self, texts: Any, **options: Any) -> Any:
        """encode() with the prompt that the model has for queries, if it has one.

        A Stitched model reads a query as one block, and all its words count alike.
        """
        how, _ = encode.pooling_of(self.model, None, None)
        alike = {"pooling": "mean"} if how == "salient" else {}
        return self.encode(texts, **self._prompted("query") | alike | {"whole": True} | options)

    def encode_document(self, texts: Any, **options: Any) -> Any:
        """encode() with the prompt that the model has for documents, if it has one."""
        return self.encode(texts, **self._prompted("document", "passage", "corpus") | options)

    @staticmethod
    def similarity(a: Any, b: Any) -> Tensor:
        """The cosine of each vector of `a` (A, C) with each of `b` (B, C), as a tensor (A, B)."""
        left, right = (torch.atleast_2d(torch.as_tensor(np.asarray(vectors))).float() for vectors in (a, b))
        return F.normalize(left) @ F.normalize(right).T

    def classify(self, texts: Any, *, top_k: int | None = 1, **options: Any) -> Any:
        """{label, score, n_tokens, truncated, windows} for each text; a list if top_k is not 1.

        top_k=None gives all labels. A pair of texts is {"text": ..., "text_pair": ...}. The score is a
        probability (softmax; sigmoid for one label or labels that do not exclude each other), or the number
        itself for a regression. Windows of a document are averaged by probability.
        """
        given = inputs.texts("texts", texts, pairs=True)
        most = None if top_k is None else whole("top_k", top_k, 1)
        read = self._read(
            "classify", given.names, self.tokenizer.encode_many(given.items), classify.step, options
        )
        results = [
            document.result(classify.decode(found, self.labels, self.problem, most), alone=most == 1)
            for document, found in read
        ]
        return results[0] if given.single else results

    def tag(
        self,
        texts: Any,
        *,
        aggregation_strategy: str = "none",
        ignore_labels: Sequence[str] = ("O",),
        **options: Any,
    ) -> Any:
        """For each text a list of {entity, score, index, word, start, end}, or of entities of several tokens.

        These are {entity_group, score, word, start, end}, with aggregation_strategy "simple", "first",
        "average" or "max". start and end count characters. A token of several windows is taken from the one
        where it stands most centrally.
        """
        given = inputs.texts("texts", texts)
        strategy = one_of("aggregation_strategy", aggregation_strategy, tag.STRATEGIES)
        read = self._read("tag", given.names, self.tokenizer.encode_many(given.items), tag.step, options)
        how = tag.tagger(self.tokenizer, self.labels, strategy, ignore_labels)
        results = [
            Found(tag.decode(how, text, document, found), document.reading)
            for text, (document, found) in zip(given.items, read, strict=True)
        ]
        return results[0] if given.single else results

    def answer(
        self,
        question: Any,
        context: Any = None,
        *,
        top_k: int = 1,
        max_answer_len: int = 30,
        handle_impossible_answer: bool = False,
        **options: Any,
    ) -> Any:
        """{score, start, end, answer, n_tokens, truncated, windows}; a list of answers for top_k > 1.

        Two texts, two lists, one of each, or a list of {"question": ..., "context": ...}. answer is
        context[start:end], at most `max_answer_len` tokens long, and "" where there is none (only with
        handle_impossible_answer=True). Windows of a document compete in one softmax.
        """
        given = inputs.questions(question, context)
        most, longest = whole("top_k", top_k, 1), whole("max_answer_len", max_answer_len, 1)
        read = self._read(
            "answer", given.names, self.tokenizer.encode_many(given.items), answer.step, options
        )
        results = []
        for (_, text), (document, found) in zip(given.items, read, strict=True):
            best = answer.decode(
                text, document, found, top_k=most, longest=longest, impossible=handle_impossible_answer
            )
            results.append(document.result(best, alone=most == 1))
        return results[0] if given.single else results

    def choose(self, prompt: Any, choices: Any = None, **options: Any) -> Any:
        """{index, choice, score, scores, n_tokens, truncated, windows}: which choice fits the prompt best.

        A text and a list of choices, two lists, or a list of {"prompt": ..., "choices": [...]}. Each
        choice is read beside the prompt; n_tokens and truncated are sums over the choices.
        """
        given = inputs.prompts(prompt, choices)
        pairs = [(text, choice) for text, offered in given.items for choice in offered]
        names = [name for name, (_, offered) in zip(given.names, given.items, strict=True) for _ in offered]
        read = self._read("choose", names, self.tokenizer.encode_many(pairs), choose.step, options)
        results = []
        for _, offered in given.items:
            mine = [next(read) for _ in offered]
            tokens, cut, windows = zip(*(document.reading for document, _ in mine), strict=True)
            reading = Reading(sum(tokens), sum(cut), max(windows))
            results.append(choose.decode(offered, [found for _, found in mine]) | reading._asdict())
        return results[0] if given.single else results

    def fill(self, texts: Any, *, top_k: int = 5, **options: Any) -> Any:
        """For each text a list of {score, token, token_str, sequence}, or one for each of several masks."""
        given = inputs.texts("texts", texts)
        most = whole("top_k", top_k, 1)
        encodings = fill.encoded(self.tokenizer, given.items, given.names)
        step = fill.guesses(self.tokenizer, most)
        read = self._read("fill", given.names, encodings, step, options)
        results = [
            Found(fill.decode(self.tokenizer, name, *found), found[0].reading)
            for name, found in zip(given.names, read, strict=True)
        ]
        return results[0] if given.single else results

    def summarise(
        self,
        texts: Any,
        *,
        query: Any = None,
        stream: summarise.Shown | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> list[dict[str, Any]]:
        """[{summary_text, n_tokens, truncated}], one for each document; a list even for a single one.

        A document is a text, or a pathlib.Path that is read; several are a list. `query`, one text or one for
        each document, is put before it. `stream` is called with the pieces of a single summary as soon as
        they are certain, and ends it by returning False.
        Options of writing are those of longspan.generation.options.Writing (beams, longest, shortest,
        length_penalty, no_repeat, sample, count, ...), also by transformers' names (num_beams, max_length,
        ...); what is not given is as the model's folder has it, else 4 beams and at most 256 tokens. With
        count > 1 there are `summaries`, too, whose first is `summary_text`. What is drawn (sample=True)
        depends on `seed` and the document alone.
        """
        if not isinstance(self.model, Writer):
            raise wrong_task("summarise", self.task)
        reading, asked = summarise.divided(options)
        settings = self.options.but(**reading)
        own = summarise.own_writing(self.config, self.generation)
        sizes = self.model.body.config
        writing = summarise.chosen(asked, own, positions=sizes.positions, vocab=sizes.vocab_size)
        given = inputs.documents("texts", texts)
        encodings = self.tokenizer.encode_many(summarise.with_queries(given.items, query))
        documents = prepared(self.model, TASKS["summarise"], given.names, encodings, settings)
        return summarise.write(
            self.model, self.tokenizer, documents, settings, writing, seed=seed, shown=stream
        )

    def save(self, folder: str | Path) -> None:
        """Write the model and the tokenizer, so that longspan.load and transformers can read them."""
        labels = self.labels or None
        save_model(self.model, folder, labels=labels, problem=self.problem, extra=self.config)
        self.tokenizer.save(folder, types=uses_types(self.model))
        if self.prompts:
            stated = {"prompts": self.prompts, "default_prompt_name": self.default_prompt_name}
            (Path(folder) / PROMPTS).write_text(json.dumps(stated, indent=2) + "\n", encoding="utf-8")
        if self.generation:
            text = json.dumps(self.generation, indent=2, ensure_ascii=False)
            (Path(folder) / GENERATION).write_text(text + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        config, weight = self.model.config, next(self.model.parameters())
        kind, dtype = type(self.model.body).__name__, str(weight.dtype).removeprefix("torch.")
        size = f"{config.layers} layers, {config.width} wide, up to {self.model.longest} tokens"
        dtype = "int8" if is_quantised(self.model) else dtype
        where = f"{dtype} on {weight.device}, overflow={self.options.overflow!r}"
        return f"Reader({self.task!r}, {kind} of {size}, {where})"

    def _read(
        self,
        verb: str,
        names: Sequence[str],
        encodings: Sequence[Encoding],
        step: Step,
        changes: Mapping[str, Any],
    ) -> Iterator[tuple[Document, list[FloatArray]]]:
        """Each document and what `step` finds in its pieces; every model can encode."""
        if verb not in (self.task, "encode"):
            raise wrong_task(verb, self.task)
        options = self.options.but(**changes)
        documents = prepared(self.model, TASKS[verb], names, encodings, options)
        return zip(documents, run(self.model, documents, options, step), strict=True)

    def _prompted(self, *kinds: str) -> dict[str, str]:
        return next(({"prompt_name": kind} for kind in kinds if kind in self.prompts), {})

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        if prompt is not None:
            return prompt
        name = self.default_prompt_name if name is None else name
        return "" if name is None else self.prompts[one_of("prompt_name", name, self.prompts)]


def _stated(folder: Path, name: str) -> dict[str, Any]:
    """What a file of the folder says, if it is there."""
    return read_json(inside(folder, name)) if (folder / name).is_file() else {}


def _tokenizer(given: Tokenizer | str | Path, vocabulary: int) -> Tokenizer:
    if isinstance(given, Tokenizer):
        return given
    try:
        return Tokenizer.from_folder(given, vocab_size=vocabulary)
    except InputError as error:
        repair = "Put the tokenizer's files there, or pass tokenizer=, a folder that has them."
        raise InputError(f"{error} {repair}") from error
