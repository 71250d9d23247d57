"""Reader: a model, its tokenizer and a task, so that text goes in and answers come out."""

from collections.abc import Iterable
from typing import Literal, Unpack, overload

from longspan.pipeline.documents import Found
from longspan.pipeline.inputs import PathLike, TextPair
from longspan.pipeline.options import ReadingOptions
from longspan.pipeline.packing import Batch
from longspan.shapes import Vector
from longspan.tasks import answer, choose, classify, fill, rank, summarize, tag
from longspan.tasks.answer import Answer, AnswerOptions, Question, Span
from longspan.tasks.batches import Examples, examples
from longspan.tasks.choose import Choice, Prompt
from longspan.tasks.classify import Classification, LabelScore
from longspan.tasks.fill import Guess
from longspan.tasks.rank import Ranked, Ranker, RankOptions
from longspan.tasks.registry import TASKS
from longspan.tasks.summarize import GenerationOptions, OnText, Summary
from longspan.tasks.tag import Entity, TagOptions
from longspan.token_embedder import TokenEmbedder

Text = str | TextPair
Questions = str | Iterable[str | Question]
Texts = str | Iterable[str] | None


class Reader(TokenEmbedder):
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

    def rank(
        self,
        query: str,
        documents: Iterable[str],
        top_k: int | None = None,
        return_documents: bool = False,
        **options: Unpack[RankOptions],
    ) -> list[Ranked]:
        """[{corpus_id, score, n_tokens, truncated, windows}], the best document first, as CrossEncoder.rank.

        corpus_id counts the documents as they were given; return_documents=True adds their `text`. For
        cross-encoders (classifiers of one output) and models of late interaction. A score is the output with
        the activation that the model's folder names, else a sigmoid; of two outputs, the probability of the
        second. A document longer than the model is read in windows, whose best score counts. `prompt`, or the
        model's own of the name `prompt_name`, precedes the query.
        """
        return rank.rank(self._ranker(options), query, documents, top_k, return_documents, options)

    @overload
    def predict(self, pairs: tuple[str, str], **options: Unpack[RankOptions]) -> float: ...
    @overload
    def predict(
        self, pairs: Iterable[tuple[str, str] | list[str]], **options: Unpack[RankOptions]
    ) -> Vector: ...
    def predict(
        self, pairs: tuple[str, str] | Iterable[tuple[str, str] | list[str]], **options: Unpack[RankOptions]
    ) -> Vector | float:
        """The score of each pair of a query and a document (B,), as rank() gives it."""
        return rank.predict(self._ranker(options), pairs, options)

    def check_ranks(self) -> None:
        """Raise an InputError if the model gives no scores, before there is anything to rank."""
        rank.check(self._ranker({}))

    def _ranker(self, options: RankOptions) -> Ranker:
        prompt = self._prompt(options.get("prompt"), options.get("prompt_name"))
        return Ranker(self.task, self._pipeline(self.task), self.config, prompt)

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
        return self.examples(*inputs, labels=labels, **options).batches()

    def examples(
        self, *inputs: object, labels: Iterable[object] | None = None, **options: Unpack[ReadingOptions]
    ) -> Examples:
        """The same, tokenized once, as a training run takes it: any of the inputs as a batch."""
        known = self.labels, self.problem, self._prompt(None, None)
        return examples(TASKS[self.task], self._pipeline(self.task), inputs, labels, known, options)

    def __call__(self, *inputs: object, **options: object) -> object:
        """The verb of the task it was loaded for: reader(text) classifies, if it is a classifier."""
        verb = getattr(self, TASKS[self.task].verb or self.task, None)
        if verb is not None:
            return verb(*inputs, **options)
        return TASKS[self.task].run(self._pipeline(self.task), *inputs, **options)
