"""`longspan corpus PATH... --out DIR`: documents to tokens on the disk, to train on."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli.options import check_folder, check_paths, count
from longspan.cli.parsing import Verb
from longspan.cli.terminal import is_quiet, say

if TYPE_CHECKING:
    from longspan.corpus.texts import Rules

DATA = "files and folders: documents, text, .jsonl, FASTA; text, .jsonl and FASTA may end in .gz"
TOKENIZER = "a folder that has one; or bpe, wordpiece or dna: learn one from the data"


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "corpus",
        help="documents to tokens on the disk, to train on",
        examples=[
            "longspan corpus books/ notes.jsonl --tokenizer ./my-model --out corpus",
            "longspan corpus wiki.txt.gz --lines --tokenizer bpe --vocab 16000 --out corpus",
            "longspan corpus chr17.fa.gz --tokenizer dna --vocab 4096 --out dna",
        ],
    )
    verb.add_argument("paths", nargs="+", metavar="PATH", help=DATA)
    verb.add_argument("--out", type=Path, required=True, metavar="DIR", help="where it is written")
    verb.add_argument("--tokenizer", required=True, metavar="TOKENIZER", help=TOKENIZER)
    add_texts(verb)
    verb.add_argument("--force", action="store_true", help="replace a corpus of other data that is there")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


def add_texts(verb: argparse.ArgumentParser) -> None:
    """Declare how files become texts, and what is learnt from them."""
    verb.add_argument("--vocab", type=count, metavar="N", help="tokens of a new tokenizer (default: 32000)")
    verb.add_argument("--lines", action="store_true", help="each line of a text is a document")
    verb.add_argument("--field", default="text", help="where a .jsonl file has its texts (default: text)")


def rules_of(arguments: argparse.Namespace) -> "Rules":
    """What a text is, by these options."""
    from longspan.corpus.texts import Rules

    return Rules(lines=arguments.lines, field=arguments.field)


def run(arguments: argparse.Namespace) -> int:
    """Build it and print what it holds; 3 if some files could not be read."""
    check_paths("PATH", arguments.paths)
    out = check_folder("--out", arguments.out)
    from longspan.recipes.data import VOCABULARY, corpus_of

    corpus = corpus_of(
        [Path(path).expanduser() for path in arguments.paths],
        out,
        arguments.tokenizer,
        vocab_size=arguments.vocab or VOCABULARY,
        rules=rules_of(arguments),
        force=arguments.force,
        progress=False if is_quiet() else None,
    )
    for reason in corpus.failed:
        say(reason)
    facts = {
        "folder": str(corpus.folder),
        "documents": len(corpus),
        "tokens": corpus.tokens,
        "characters": corpus.characters,
        "vocab_size": corpus.vocab_size,
    }
    if arguments.json:
        print(json.dumps(facts, indent=1))
    else:
        print(
            "\n".join(
                f"{name:<12}{value:,}" if isinstance(value, int) else f"{name:<12}{value}"
                for name, value in facts.items()
            )
        )
    return 3 if corpus.failed else 0
