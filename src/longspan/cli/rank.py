"""`longspan rank QUERY FILE... --model MODEL`: documents by how well they answer, each read whole."""

import argparse
import json

from longspan.cli.inputs import DOCUMENTS, Failures, files, report_failures, text_of
from longspan.cli.options import MODEL, add_adapter, add_limits, add_ocr, check_model, count, limits_of
from longspan.cli.parsing import Verb
from longspan.errors import missing


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "rank",
        help="order documents by how well they answer a query",
        examples=[
            'longspan rank "who may end the contract?" contracts/ --model BAAI/bge-reranker-v2-m3',
            'longspan rank "rate of interest" a.pdf b.pdf --model ./reranker --json',
        ],
    )
    verb.add_argument("query", metavar="QUERY", help="a question, a sentence or some words")
    verb.add_argument("paths", nargs="+", metavar="FILE", help=DOCUMENTS)
    verb.add_argument("--model", metavar="MODEL", help=f"a re-ranker: {MODEL}")
    add_adapter(verb)
    verb.add_argument("--top", type=count, metavar="N", help="documents to show (default: all)")
    verb.add_argument("--json", action="store_true", help="print JSON")
    add_ocr(verb)
    add_limits(verb, at_once=True)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the documents, the best first; 3 if some files could not be read."""
    from longspan.search.rerank import load_reranker
    from longspan.search.results import printable

    if arguments.model is None:
        repair = "Give a folder or a name on the hub, as in --model BAAI/bge-reranker-v2-m3."
        raise missing("--model", "a re-ranker", repair)
    failed: Failures = []
    paths, limits = files(arguments.paths, failed, ocr=arguments.ocr), limits_of(arguments, at_once=True)
    reader = load_reranker(check_model(arguments.model), arguments.adapter)
    read = {str(path): text_of(path, failed, limits, ocr=arguments.ocr) for path in paths}
    texts = {name: text for name, text in read.items() if text is not None}
    names, shown = list(texts), False if arguments.quiet else None
    ranked = reader.rank(arguments.query, texts.values(), top_k=arguments.top, progress=shown)
    results = [{"file": names[one["corpus_id"]], **one} for one in ranked]
    if arguments.json:
        heading = {"query": arguments.query, "model": arguments.model}
        print(json.dumps({**heading, "results": results, "failed": failed}))
    else:
        for place, one in enumerate(results, 1):
            windows = f", in {one['windows']} windows" if ranked[place - 1]["windows"] > 1 else ""
            size = f"{one['n_tokens']} tokens{windows}"
            print(f"{place}. {printable(str(one['file']))}\t{one['score']:.4f}\t{size}")
    return report_failures(failed)
