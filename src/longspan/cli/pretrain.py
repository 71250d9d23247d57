"""`longspan pretrain --data ... --out DIR`: train a masked language model, new or from a folder."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli.corpus import DATA, TOKENIZER, add_texts, rules_of
from longspan.cli.options import MODEL, check_folder, check_model, check_paths, count, setting, settings
from longspan.cli.parsing import Verb
from longspan.cli.terminal import is_quiet, note
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
            "longspan pretrain --from roberta-4096 --data books/ --steps 3000 --out trained",
            "longspan pretrain --from roberta-4096 --data books/ --steps 500 --frozen --out trained",
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
    verb.add_argument("--out", type=Path, metavar="DIR", help="where the model and its run are written")
    verb.add_argument("--tokenizer", metavar="TOKENIZER", help=f"{TOKENIZER} (default: the model's)")
    add_texts(verb)
    _add_training(verb)
    verb.add_argument("--dry-run", action="store_true", help="say what would be done")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


def _add_training(verb: argparse.ArgumentParser) -> None:
    amount = verb.add_mutually_exclusive_group()
    amount.add_argument("--steps", type=count, metavar="N", help="updates of the weights")
    amount.add_argument("--epochs", type=count, metavar="N", help="how often every example is seen")
    amount.add_argument("--minutes", type=float, metavar="M", help="about how long it may take")
    option = verb.add_argument
    option(
        "--length", type=count, metavar="N", help="tokens of an example (default: the model's, up to 4096)"
    )
    option("--packing", default="documents", help="documents (default), or joined: examples across documents")
    option("--masking", default="token", help="what is masked: token (default) or word")
    option("--rate", type=float, default=0.15, metavar="SHARE", help="how much is masked (default: 0.15)")
    option("--frozen", action="store_true", help="train positions only")
    option(
        "--cpc", action="store_true", help="predict sentences, too, by a model with a stream of global tokens"
    )
    option(
        "--dev", type=float, default=0.05, metavar="SHARE", help="of documents to evaluate on (default: 0.05)"
    )
    option(
        "--lr", type=float, metavar="RATE", help="learning rate (default: 5e-4 for a new model, else 3e-5)"
    )
    option(
        "--batch-tokens", type=count, default=32_768, metavar="N", help="tokens of an update (default: 32768)"
    )
    option(
        "--micro-tokens",
        type=count,
        default=8192,
        metavar="N",
        help="tokens computed at once (default: 8192)",
    )
    option(
        "--checkpointing", action="store_true", help="compute layers again in the backward pass: less memory"
    )
    option("--seed", type=int, default=0, metavar="N")


def run(arguments: argparse.Namespace) -> int:
    """Train it and print the report; 3 if some files could not be read."""
    if arguments.config == "help":
        return _list_presets()
    for name, what in (("data", DATA), ("out", "a folder")):
        if getattr(arguments, name) is None:
            raise missing(f"--{name}", what)
    if arguments.source and arguments.set:
        raise bad("--set", "left out with --from, whose config stands", arguments.set[0])
    check_paths("--data", arguments.data)
    arguments.out = check_folder("--out", arguments.out)
    config = _config(arguments)
    from longspan.recipes.pretrain import pretrain
    from longspan.recipes.pretrain_plan import Pretraining

    start, corpus = _begun(arguments)
    for text in (*start.notes, *corpus.failed):
        note(text)
    if arguments.dry_run:
        print(Pretraining(start, corpus, config))
        return 0
    report = pretrain(start, corpus, arguments.out, config, progress=False if is_quiet() else None)
    print(json.dumps(report.to_dict(), indent=1, default=str) if arguments.json else report)
    return 3 if corpus.failed else 0


def _config(arguments: argparse.Namespace) -> "PretrainConfig":
    from longspan.recipes.masking import Masking
    from longspan.recipes.pretrain_plan import PretrainConfig

    names = ["steps", "epochs", "minutes", "length", "packing", "frozen", "cpc", "dev", "lr"]
    names += ["batch_tokens", "micro_tokens", "seed"]
    masking = Masking(unit=arguments.masking, rate=arguments.rate)
    given = {name: getattr(arguments, name) for name in names}
    return PretrainConfig(masking=masking, gradient_checkpointing=arguments.checkpointing, **given)


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
