"""`longspan pretrain --data ...`: train a masked language model, new or from a folder."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli.corpus import DATA, TOKENIZER, add_texts, rules_of
from longspan.cli.options import MODEL, check_folder, check_model, check_paths, count, setting, settings
from longspan.cli.parsing import Verb
from longspan.cli.terminal import is_quiet, note
from longspan.cli.training import add_loop, running, shaping
from longspan.errors import bad, missing

if TYPE_CHECKING:
    from longspan.corpus.store import Corpus
    from longspan.recipes.pretrain_plan import PretrainConfig
    from longspan.recipes.start import Start


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "pretrain",
        help="train a masked language model, new or from a folder",
        examples=[
            "longspan pretrain --from roberta-4096 --data books/ --steps 3000",
            "longspan pretrain --from roberta-4096 --data books/ --frozen",
            "longspan pretrain --config longformer-base --set layers=4 --data corpus --epochs 3 --out new",
            "longspan pretrain --config bert-base --tokenizer wordpiece --data docs/ --minutes 60 --out new",
        ],
    )
    begin = verb.add_mutually_exclusive_group(required=True)
    begin.add_argument("--from", dest="source", metavar="MODEL", help=f"go on with {MODEL}")
    begin.add_argument("--config", metavar="PRESET", help="begin a new model; --config help lists presets")
    verb.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a field of the preset"
    )
    verb.add_argument("--data", nargs="+", metavar="PATH", help=f"a corpus of `longspan corpus`, or {DATA}")
    where = "where model and run are written (default: a name like roberta-4096-books-frozen)"
    verb.add_argument("--out", type=Path, metavar="DIR", help=where)
    verb.add_argument("--tokenizer", metavar="TOKENIZER", help=f"{TOKENIZER} (default: the model's)")
    add_texts(verb)
    _add_training(verb)
    verb.add_argument("--dry-run", action="store_true", help="say what would be done")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


def _add_training(verb: argparse.ArgumentParser) -> None:
    amount = verb.add_mutually_exclusive_group()
    amount.add_argument("--steps", type=count, metavar="N", help="updates of the weights")
    amount.add_argument("--epochs", type=count, metavar="N", help="how often all is seen (default: 1)")
    amount.add_argument("--minutes", type=float, metavar="M", help="about how long it may take")
    option = verb.add_argument
    option(
        "--length", type=count, metavar="N", help="tokens of an example (default: the model's, up to 4096)"
    )
    option("--packing", default="documents", help="documents (default), or joined: examples across documents")
    option("--masking", default="token", help="what is masked: token (default) or word")
    option("--rate", type=float, default=0.15, metavar="SHARE", help="how much is masked (default: 0.15)")
    option("--frozen", action="store_true", help="train new positions only: those behind the first copy")
    option(
        "--cpc", action="store_true", help="predict sentences, too, by a model with a stream of global tokens"
    )
    option(
        "--dev", type=float, default=0.05, metavar="SHARE", help="of documents to evaluate on (default: 0.05)"
    )
    schedules = ("constant", "linear", "cosine", "polynomial")
    option("--schedule", choices=schedules, help="(default: linear for a new model, else polynomial)")
    option(
        "--batch-tokens", type=count, default=32_768, metavar="N", help="tokens of an update (default: 32768)"
    )
    add_loop(verb, lr="5e-4 for a new model, else 3e-5", micro_tokens=8192)


def run(arguments: argparse.Namespace) -> int:
    """Train it and print the report; 3 if some files could not be read."""
    if arguments.config == "help":
        return _list_presets()
    if arguments.data is None:
        raise missing("--data", DATA)
    if arguments.source and arguments.set:
        raise bad("--set", "left out with --from, whose config stands", arguments.set[0])
    check_paths("--data", arguments.data)
    arguments.out = check_folder("--out", arguments.out or _place(arguments))
    config = _config(arguments)
    from longspan.recipes.pretrain import pretrain
    from longspan.recipes.pretrain_plan import Pretraining
    from longspan.training.ranks import is_first

    start, corpus = _begun(arguments)
    for text in (*start.notes, *corpus.failed):
        note(text)
    if arguments.dry_run:
        print(Pretraining(start, corpus, config))
        return 0
    if is_first():
        note(f"model and run are in {arguments.out}")
    report = pretrain(start, corpus, arguments.out, config, **running(arguments))
    if is_first():
        print(json.dumps(report.to_dict(), indent=1, default=str) if arguments.json else report)
    return 3 if corpus.failed else 0


def _place(arguments: argparse.Namespace) -> Path:
    """A name in this folder, by source and data."""
    words = [Path(arguments.source).expanduser().absolute().name if arguments.source else arguments.config]
    words.append(Path(arguments.data[0]).expanduser().absolute().name.partition(".")[0])
    return Path("-".join([*words, *(["frozen"] if arguments.frozen else [])]))


def _config(arguments: argparse.Namespace) -> "PretrainConfig":
    from longspan.recipes.masking import Masking
    from longspan.recipes.pretrain_plan import PretrainConfig

    if arguments.steps is None and arguments.minutes is None and arguments.epochs is None:
        arguments.epochs = 1
    names = ["steps", "epochs", "minutes", "length", "packing", "frozen", "cpc", "dev"]
    names += ["lr", "schedule", "batch_tokens"]
    masking = Masking(unit=arguments.masking, rate=arguments.rate)
    given = {name: getattr(arguments, name) for name in names}
    return PretrainConfig(masking=masking, **given, **shaping(arguments))


def _begun(arguments: argparse.Namespace) -> "tuple[Start, Corpus]":
    """The model to begin with, and the corpus, built if need be."""
    from longspan.recipes.data import VOCABULARY, corpus_of
    from longspan.recipes.start import Start

    start, tokenizer = None, arguments.tokenizer
    if arguments.source is not None:
        if tokenizer is not None:
            raise bad("--tokenizer", "left out with --from: a model has its own", tokenizer)
        start = Start.from_folder(check_model(arguments.source))
        tokenizer = start.tokenizer
    corpus = corpus_of(
        [Path(path).expanduser() for path in arguments.data],
        arguments.out / "corpus",
        tokenizer,
        vocab_size=arguments.vocab or VOCABULARY,
        rules=rules_of(arguments),
        progress=False if is_quiet() else None,
    )
    if start is None:
        changes = {name: setting(text) for name, text in settings(arguments.set)}
        start = Start.from_preset(
            arguments.config, corpus.tokenizer, length=arguments.length, seed=arguments.seed, changes=changes
        )
    return start, corpus


def _list_presets() -> int:
    from longspan.families.registry import presets

    for name, config in presets().items():
        if not config.has_decoder:
            print(f"{name:<24}{config.layers} layers, {config.width} wide, {config.encoder.longest:,} tokens")
    return 0
