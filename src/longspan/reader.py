"""Reader: a model, its tokenizer and a task, so that text goes in and answers come out."""

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import torch

from longspan.builtin import ensure
from longspan.checkpoints.load import LoadedModel, load_model
from longspan.checkpoints.save import GENERATION, PROMPTS
from longspan.embedder import Embedder
from longspan.errors import InputError, bad
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.formats.atomic import settled
from longspan.formats.files import inside, read_json
from longspan.hub import local_folder
from longspan.nn.quantized import quantize
from longspan.pipeline.documents import Found
from longspan.pipeline.inputs import PathLike, TextPair
from longspan.pipeline.options import Options, ReadingOptions
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import log
from longspan.tasks import answer, choose, classify, fill, summarize, tag
from longspan.tasks.answer import Answer, AnswerOptions, Question, Span
from longspan.tasks.batches import batches
from longspan.tasks.choose import Choice, Prompt
from longspan.tasks.classify import Classification, LabelScore
from longspan.tasks.fill import Guess
from longspan.tasks.registry import TASKS, task_named
from longspan.tasks.summarize import GenerationOptions, OnText, Summary
from longspan.tasks.tag import Entity, TagOptions
from longspan.text.tokenizer import Tokenizer

SAVE_IT = "Save a tokenizer of transformers with save_pretrained(folder), and give the folder."
Text = str | TextPair
Questions = str | Iterable[str | Question]
Texts = str | Iterable[str] | None


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
    **options: Unpack[ReadingOptions],
) -> "Reader":
    """A Reader for a folder or a model of the Hugging Face hub, downloaded as data: none of its code is run.

    "default" is the built-in model, which is fetched and lengthened when it is first needed; else `model` is
    a folder if it exists, a name that `longspan models` lists, or a name on the hub, in this order. `task` is
    a verb of the Reader, or what Hugging Face calls it; None is what the model was made for. `labels` counts
    or names the classes of a new head; `tokenizer` is one, or its folder, if the model's folder has none.
    precision="int8" makes the linear layers so, for reading on a CPU. `options` are those of the Reader.
    """
    Options().but(**options)  # a mistake is an error before anything is downloaded
    _check(precision, tokenizer)
    place = _device(device)
    ensure(model, local_files_only=local_files_only)
    with _one_save(model):
        loaded = load_model(
            model,
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
        prompts = _stated(loaded.folder, PROMPTS)
        generation = _stated(loaded.folder, GENERATION) if loaded.model.backbone.config.has_decoder else {}
        words = _tokenizer(loaded.folder if tokenizer is None else tokenizer, loaded.model.config.vocab_size)
    for note in (*loaded.notes, *_unfollowed(loaded, generation)):
        log.warning("%s: %s", model, note)
    if place is not None:
        loaded.model.to(place)
    if precision == "int8":
        quantize(loaded.model)
    return Reader(
        loaded.model,
        words,
        labels=loaded.labels,
        problem=loaded.problem,
        prompts=prompts.get("prompts"),
        default_prompt_name=prompts.get("default_prompt_name"),
        config=loaded.config,
        generation=generation,
        **options,
    )


class Reader(Embedder):
    """Text in, answers out: documents of any length, packed without padding, results in the given order.

    A text gives one result, a list gives a list (summarize: always a list). A result says how many tokens
    were read (`n_tokens`), how many were not (`truncated`), and in how many `windows`: keys of a dict, or
    attributes of a list of results. `options` are the fields of longspan.pipeline.options.Options; every verb
    takes them too, for one call.
    """

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
    def tag(self, texts: str, **options: Unpack[TagOptions]) -> Found[Entity]: ...
    @overload
    def tag(self, texts: Iterable[str], **options: Unpack[TagOptions]) -> list[Found[Entity]]: ...
    def tag(self, texts: str | Iterable[str], **options: Unpack[TagOptions]) -> object:
        """For each text a list of {entity, score, index, word, start, end}, or of entities of several tokens.

        These are {entity_group, score, word, start, end}, with aggregation_strategy "simple", "first",
        "average" or "max" instead of "none". start and end count characters. Labels among `ignore_labels`,
        ("O",) by default, are left out. A token of several windows is taken from the one where it is most
        central.
        """
        return tag.tag(self._pipeline("tag"), texts, self.labels, options).unwrap()

    @overload
    def answer(
        self, question: str, context: str, *, top_k: Literal[1] = ..., **options: Unpack[AnswerOptions]
    ) -> Answer: ...
    @overload
    def answer(
        self, question: Question, *, top_k: Literal[1] = ..., **options: Unpack[AnswerOptions]
    ) -> Answer: ...
    @overload
    def answer(
        self,
        question: Questions,
        context: Texts = ...,
        *,
        top_k: Literal[1] = ...,
        **options: Unpack[AnswerOptions],
    ) -> list[Answer]: ...
    @overload
    def answer(
        self, question: str, context: str, *, top_k: int, **options: Unpack[AnswerOptions]
    ) -> Found[Span]: ...
    @overload
    def answer(
        self, question: Questions, context: Texts = ..., *, top_k: int, **options: Unpack[AnswerOptions]
    ) -> list[Found[Span]]: ...
    def answer(
        self,
        question: Question | Questions,
        context: Texts = None,
        *,
        top_k: int = 1,
        **options: Unpack[AnswerOptions],
    ) -> object:
        """{score, start, end, answer, n_tokens, truncated, windows}; a list of answers for top_k > 1.

        Two texts, two lists, one of each, or a list of {"question": ..., "context": ...}. answer is
        context[start:end], at most `max_answer_len` tokens long (30), and "" where there is none (only with
        handle_impossible_answer=True). Windows of a document compete in one softmax.
        """
        return answer.answer(self._pipeline("answer"), question, context, top_k, options).unwrap()

    @overload
    def choose(self, prompt: str, choices: Iterable[str], **options: Unpack[ReadingOptions]) -> Choice: ...
    @overload
    def choose(
        self,
        prompt: Iterable[str | Prompt],
        choices: Iterable[Iterable[str]] | None = ...,
        **options: Unpack[ReadingOptions],
    ) -> list[Choice]: ...
    def choose(
        self,
        prompt: str | Iterable[str | Prompt],
        choices: Iterable[str] | Iterable[Iterable[str]] | None = None,
        **options: Unpack[ReadingOptions],
    ) -> Choice | list[Choice]:
        """{index, choice, score, scores, n_tokens, truncated, windows}: which choice fits the prompt best.

        A text and a list of choices, two lists, or a list of {"prompt": ..., "choices": [...]}. Each choice
        is read beside the prompt; n_tokens and truncated are sums over the choices.
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
        max_new_tokens, min_new_tokens, length_penalty, no_repeat_ngram_size, do_sample, ...); what is not
        given is as the model's folder has it, else 4 beams and at most 256 tokens. With num_return_sequences
        > 1 there are `summaries`, too, whose first is `summary_text`. What is sampled depends on `seed` and
        the document.
        """
        style = self.config, self.generation
        pipeline = self._pipeline("summarize")
        return summarize.summarize(pipeline, texts, query, style, stream=stream, seed=seed, options=options)

    def prepare(
        self, *inputs: object, labels: Iterable[object] | None = None, **options: Unpack[ReadingOptions]
    ) -> list[Batch]:
        """The batches that the verb of its task would read, to feed the model by hand: to train it, say.

        `inputs` are those of the verb: texts, or two lists to answer and to choose. Each batch has `ids`,
        `layout` with the task's global tokens, blocks and structure, `token_types`, and `index`, which says
        which piece of a document each is, counted through all documents. `labels`, one for each input, become
        what the loss of the task takes (longspan.tasks): classes by name or number to classify, lists of
        (start, end, entity) to tag and of (start, end) to answer, in characters, numbers of choices to
        choose, lists of the masks' token ids to fill, summaries to summarize, partners of texts to encode.
        """
        known = self.labels, self.problem, self._prompt(None, None)
        return batches(TASKS[self.task], self._pipeline(self.task), inputs, labels, known, options)

    def __call__(self, *inputs: object, **options: object) -> object:
        """The verb of the task it was loaded for: reader(text) classifies, if it is a classifier."""
        verb = getattr(self, self.task, None)
        if verb is not None:
            return verb(*inputs, **options)
        return TASKS[self.task].run(self._pipeline(self.task), *inputs, **options)


def _one_save(name: str | Path) -> AbstractContextManager[None]:
    """Inside, all files of a local folder are of one save."""
    home = local_folder(name)
    return nullcontext() if home is None else settled(home)


def _unfollowed(loaded: LoadedModel, generation: dict[str, Any]) -> list[str]:
    """What to say of a folder's settings that have no effect."""
    writes = isinstance(loaded.model, Seq2SeqLM)
    settings = summarize.unfollowed(loaded.config, generation) if writes else {}
    named = ", ".join(f"{name}={value!r:.80}" for name, value in settings.items())
    return [f"Longspan has no such generation settings, so they have no effect: {named}."] if named else []


def _check(precision: object, tokenizer: object) -> None:
    if precision not in (None, "int8"):
        raise bad("precision", "None or 'int8'", precision, "Use dtype= for floating-point types.")
    if not isinstance(tokenizer, Tokenizer | str | os.PathLike | None):
        raise bad("tokenizer", "longspan's Tokenizer, or a folder", type(tokenizer).__name__, SAVE_IT)


def _device(device: str | torch.device | None) -> torch.device | None:
    """The device, if this machine has it."""
    if device is None:
        return None
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, TypeError, AssertionError) as error:  # AssertionError: torch has no CUDA at all
        reason = str(error).partition("\n")[0].rstrip(".")
        requirement = 'a device that torch has here, such as "cpu"'
        raise bad("device", requirement, str(device), f"torch says: {reason}.") from None
    return place


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
