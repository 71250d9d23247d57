"""`longspan summarize FILE... --model MODEL`: a summary of each document, read whole."""

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from longspan.cli.inputs import DOCUMENTS, Failures, fail, files, report_failures, text_of
from longspan.cli.options import MODEL, add_limits, add_ocr, check_model, count, limits_of
from longspan.cli.parsing import Verb
from longspan.errors import InputError, bad, missing

if TYPE_CHECKING:
    from longspan.reader import Reader
    from longspan.tasks.summarize import Summary

BLANK = " \n"
NUMBERS: dict[str, tuple[Callable[[str], float], str]] = {
    "num_beams": (count, "beams of the search; 1: greedy, or sampling"),
    "max_new_tokens": (count, "tokens of a summary at most"),
    "min_new_tokens": (int, "tokens of a summary at least"),
    "length_penalty": (float, "above 0: longer summaries, below 0: shorter ones"),
    "repetition_penalty": (float, "above 1: words are repeated less"),
    "encoder_repetition_penalty": (float, "above 1: more of the document's own words"),
    "no_repeat_ngram_size": (int, "no n-gram of this size is written twice"),
    "encoder_no_repeat_ngram_size": (int, "no n-gram of this size is copied from the document"),
    "temperature": (float, "with --do-sample: below 1 is less random"),
    "top_k": (int, "with --do-sample: from so many words"),
    "top_p": (float, "with --do-sample: from the likeliest words of this probability"),
    "min_p": (float, "with --do-sample: from words at least so likely, relative to the likeliest"),
    "typical_p": (float, "with --do-sample: from the most typical words of this probability"),
    "seed": (int, "with --do-sample: the same seed gives the same summary"),
}
FLAGS = {
    "do_sample": "sample words from their probabilities",
    "early_stopping": "stop as soon as as many summaries are finished as there are beams",
    "renormalize_logits": "let the probabilities of what is allowed sum to 1 in every step",
}
TOKENS = {
    "suppress_tokens": "tokens that are never written",
    "begin_suppress_tokens": "tokens that are never written first",
}


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "summarize",
        help="a summary of each document",
        examples=[
            "longspan summarize minutes.docx --model allenai/led-large-16384-arxiv",
            "longspan summarize papers/ --model ./led --max-new-tokens 200 --json",
            "cat minutes.txt | longspan summarize - --model ./led --stream",
        ],
    )
    verb.add_argument("paths", nargs="+", metavar="FILE", help=DOCUMENTS)
    verb.add_argument("--model", metavar="MODEL", help=f"LED, BART or BigBird-Pegasus: {MODEL}")
    verb.add_argument("--query", metavar="TEXT", help="what the summary is to say, put before each document")
    style = verb.add_argument_group(
        "generation", "as transformers names and means them; the default is the model's own"
    )
    for name, (kind, help_text) in NUMBERS.items():
        style.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="N", help=help_text)
    for name, help_text in FLAGS.items():
        style.add_argument(
            f"--{name.replace('_', '-')}", action=argparse.BooleanOptionalAction, help=help_text
        )
    for name, help_text in TOKENS.items():
        style.add_argument(f"--{name.replace('_', '-')}", type=int, nargs="+", metavar="ID", help=help_text)
    verb.add_argument("--truncate", action="store_true", help="cut documents that are too long for the model")
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--stream", action="store_true", help="print words as soon as they are certain")
    add_ocr(verb)
    add_limits(verb, at_once=True)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the summaries, each when it is written; 3 if some files could not be read or are too long."""
    from longspan.search.results import printable

    if arguments.model is None:
        repair = "Give a folder or a name on the hub, as in --model allenai/led-large-16384-arxiv."
        raise missing("--model", "a model that writes summaries", repair)
    failed: Failures = []
    paths, limits = files(arguments.paths, failed, ocr=arguments.ocr), limits_of(arguments, at_once=True)
    reader = _load(arguments.model)
    options = _options(arguments)
    reader.summarize([], **options)  # a mistake is told before anything is read
    results: list[dict[str, Any]] = []
    for path in paths:
        heading = f"==> {printable(str(path))} <==\n" if len(paths) > 1 else ""
        heading = "\n" * bool(heading and results) + heading
        text = text_of(path, failed, limits, ocr=arguments.ocr)
        if text is None:
            continue
        try:
            summary = _summary(reader, text, heading, arguments, options)
        except InputError as error:  # the document is empty or too long
            reason = str(error).replace("`texts`", "the document")
            fail(failed, path, reason.replace("overflow='truncate'", "--truncate"))
        else:
            results.append({"file": str(path), **summary})
    if arguments.json:
        print(json.dumps({"model": arguments.model, "results": results, "failed": failed}))
    return report_failures(failed)


def _load(model: str) -> "Reader":
    """The model, if it is one that can write."""
    from longspan.checkpoints.load import read_raw
    from longspan.families.registry import read_config
    from longspan.loading import load

    folder = check_model(model)
    _, config = read_config(read_raw(folder))
    if not config.has_decoder:
        repair = "LED, BART and BigBird-Pegasus do."
        raise bad("--model", "a model that writes summaries", model, repair)
    return load(folder, task="summarize")


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    names = (*NUMBERS, *FLAGS, *TOKENS, "query")
    options = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    return options | {"overflow": "truncate" if arguments.truncate else "error"}


def _summary(
    reader: "Reader", text: str, heading: str, arguments: argparse.Namespace, options: dict[str, Any]
) -> "Summary":
    """What is written about one document; printed as it comes or when it is there, unless JSON is wanted."""
    before = [heading]

    def show(piece: str) -> None:
        print("".join(before) + _safe(piece.lstrip(BLANK) if before else piece), end="", flush=True)
        before.clear()

    (summary,) = reader.summarize(text, stream=show if arguments.stream else None, **options)
    if arguments.stream:
        print(flush=True)
    elif not arguments.json:
        print(heading + _safe(summary["summary_text"].strip(BLANK)), flush=True)
    return summary


def _safe(text: str) -> str:
    """What may be shown on a terminal."""
    from longspan.search.results import printable

    return "\n".join(map(printable, text.split("\n")))
