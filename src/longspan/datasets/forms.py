"""The forms of labeled examples: those of a task are one of these, whatever file they come from."""

from collections.abc import Sequence

from longspan.datasets.form import TEXT, Example, Form, Named, Row, as_they_are
from longspan.datasets.labels import MISSING, classified
from longspan.datasets.records import Place, wrong
from longspan.datasets.spans import Entity, answers, entities, spans, tagged
from longspan.errors import guess


def _classified(row: Row) -> Example:
    text = row.text("text")
    return Example((text,), row.get("label"), text)


def _entailed(row: Row) -> Example:
    premise = row.text("premise")
    more = {}
    if row.get("evidence") is not None:
        more["evidence"] = spans(row.get("evidence"), premise, row.place, "evidence")
    return Example((premise, row.text("hypothesis")), row.get("label"), premise, more)


def _answered(row: Row) -> Example:
    question, context = row.text("question"), row.text("context")
    if "answers" not in row.values and not row.get("is_impossible"):
        raise wrong(row.place, "answers", "given, [] for none", None)
    given = row.get("answers")
    found = [] if row.get("is_impossible") or given is None else answers(given, context, row.place)
    return Example((question, context), found, context, {"answers": given})


def _chosen(row: Row) -> Example:
    choices, label = row.texts("choices"), row.get("label")
    document = row.text("context") if "context" in row.values else row.text("question")
    question = row.text("question")
    prompt = f"{question}\n\n{document}" if "context" in row.values else question
    if label in MISSING:
        raise wrong(row.place, "label", "the number of the right choice, its letter or its text", label)
    if isinstance(label, str) and label in choices:
        label = choices.index(label)
    elif isinstance(label, str):
        label = int(label) if label.isdecimal() else ord(label) - ord("A") if len(label) == 1 else None
    if type(label) is not int or not 0 <= label < len(choices):
        requirement = f"the number of a choice, from 0 to {len(choices) - 1}, its letter or its text"
        raise wrong(row.place, "label", requirement, row.get("label"))
    return Example((prompt, choices), label, document)


def _tagged(row: Row) -> Example:
    if row.get("tokens") is not None:
        text, found = tagged(row.texts("tokens"), row.texts("tags"), row.place)
        return Example((text,), found, text, {"tokens": row.get("tokens")})
    text = row.text("text")
    if "entities" not in row.values:
        raise wrong(row.place, "entities", "given, [] for none", None, "Or give tokens and tags.")
    return Example((text,), entities(row.get("entities"), text, row.place), text)


def _tags(
    labels: Sequence[object], places: Sequence[Place], wanted: Sequence[str] | None, problem: str | None
) -> tuple[list[object], tuple[str, ...], None]:
    """The classes of tokens: O, and B- and I- of each name."""
    as_they_are(labels, places, None, problem)
    names = sorted({entity[2] for one in labels for entity in _entities(one)})
    classes = ("O", *(prefix + name for name in names for prefix in ("B-", "I-")))
    if wanted is not None:
        known = {name.split("-", 1)[-1] for name in wanted}
        for one, place in zip(labels, places, strict=True):
            for *_, name in _entities(one):
                if name not in known:
                    raise wrong(place, "entity", f"one of {', '.join(wanted)}", name, guess(name, known))
    return list(labels), tuple(wanted) if wanted is not None else classes, None


def _entities(label: object) -> list[Entity]:
    return label if isinstance(label, list) else []


def _summarized(row: Row) -> Example:
    document, given = row.text("document"), row.values.get("summary")
    references = given if isinstance(given, list) else [given]
    for one in references or [None]:
        if not isinstance(one, str) or not one.strip():
            raise wrong(row.place, "summary", TEXT, one)
    query = row.get("query")
    if query is None:
        return Example((document,), references[0], document, {"references": references})
    more = {"references": references, "query": query}
    return Example((f"{row.text('query')}\n\n{document}",), references[0], document, more)


def _paired(row: Row) -> Example:
    text = row.text("text")
    return Example((text,), row.text("positive"), row.text("positive"))


def _linked(row: Row) -> Example:
    text, given = row.text("text"), row.values.get("clusters")
    if not isinstance(given, list):
        raise wrong(row.place, "clusters", "a list of lists of [start, end]", given)
    clusters = [spans(cluster, text, row.place, "clusters") for cluster in given]
    mentions = [mention for cluster in clusters for mention in cluster]
    if len(set(mentions)) < len(mentions) or not all(clusters):
        raise wrong(row.place, "clusters", "lists with each mention once", given)
    return Example((text,), clusters, text)


_DOCUMENTS = ("document", "content", "body", "article", "passage", "sentence")
_LABEL = Named("label", ("labels", "class", "category", "target", "gold_label", "choice"))

TEXTS = Form(("text",), (Named("text", _DOCUMENTS), _LABEL), _classified, classified)
"""A text and its class, its classes or a number."""

ENTAILMENTS = Form(
    ("premise", "hypothesis"),
    (
        Named("premise", ("context", "sentence1", "text", "document")),
        Named("hypothesis", ("statement", "claim", "sentence2")),
        _LABEL,
        Named("evidence", ("spans",), required=False),
    ),
    _entailed,
    classified,
)
"""Whether a text says a sentence, and perhaps where."""

QUESTIONS = Form(
    ("question", "context"),
    (
        Named("question", ("query",)),
        Named("context", ("text", *_DOCUMENTS)),
        Named("answers", ("answer", "spans"), required=False),
        Named("is_impossible", required=False),
    ),
    _answered,
)
"""Questions and where a text answers them; `[]` for no answer."""

CHOICES = Form(
    ("prompt", "choices"),
    (
        Named("question", ("prompt", "query")),
        Named("context", ("text", *_DOCUMENTS), required=False),
        Named("choices", ("options", "candidates", "endings")),
        Named("label", ("answer", "correct", "gold_label", "target")),
    ),
    _chosen,
)
"""Questions, a document beside them or not, and several answers of which one is right."""

TAGS = Form(
    ("text",),
    (
        Named("text", _DOCUMENTS, required=False),
        Named("entities", ("spans", "labels", "label"), required=False),
        Named("tokens", ("words",), required=False),
        Named("tags", ("ner_tags", "ner"), required=False),
    ),
    _tagged,
    _tags,
)
"""Texts and the entities in them, by characters, or tokens and their tags."""

SUMMARIES = Form(
    ("document",),
    (
        Named(
            "document", ("text", "article", "dialogue", "transcript", "report", "source", "content", "body")
        ),
        Named("summary", ("summaries", "highlights", "abstract", "target", "answer")),
        Named("query", ("question",), required=False),
    ),
    _summarized,
)
"""Documents and texts about them; a query stands before its document, as `summarize(query=)` puts it."""

PAIRS = Form(
    ("text",),
    (
        Named("text", ("anchor", "query", "question", "sentence1")),
        Named("positive", ("passage", "document", "answer", "sentence2", "text_pair")),
    ),
    _paired,
)
"""Texts that belong together."""

CLUSTERS = Form(("text",), (Named("text", _DOCUMENTS), Named("clusters", ("coref", "coreferences"))), _linked)
"""Texts, and the mentions in them that mean the same."""
