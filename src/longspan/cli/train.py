"""`longspan train char-lm --data FILE`: train a model by a recipe; a run that stopped goes on."""

import argparse
import json
import time
from pathlib import Path

from longspan.cli.options import check_folder, count, seconds
from longspan.cli.parsing import Verb
from longspan.cli.terminal import note
from longspan.cli.training import add_loop, running, shaping
from longspan.errors import bad


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    example = "longspan train char-lm --data enwik8.gz --config tiny"
    verb = verbs.add_parser("train", help="train a model by a recipe", examples=[example])
    subjects = verb.add_subparsers(metavar="RECIPE", required=True)
    recipe = subjects.add_parser(
        "char-lm",
        help="a language model of bytes, with windows that grow",
        examples=[
            example,
            "longspan train char-lm --data enwik8.gz --out run --minutes 60",
            "longspan train char-lm --data notes.txt --out run --steps 200 --positions relative",
        ],
        epilog="The same command again goes on where it stopped. DIR is then a model for `eval char-lm` and "
        "`sample`.",
    )
    option = recipe.add_argument
    option(
        "--data", type=Path, required=True, metavar="FILE", help="a text (.gz, .xz, .zip), or a DIR of splits"
    )
    option("--out", type=Path, metavar="DIR", help="the folder of run and model (default: char-lm-CONFIG)")
    option("--config", choices=("tiny", "small", "large"), default="tiny", help="its size (default: tiny)")
    option("--positions", choices=("rotary", "relative"), help="(default: as the config has it)")
    option("--vocabulary", choices=("bytes", "data"), default="bytes", help="all bytes, or those of the data")
    length = recipe.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=minutes, metavar="M", help="how long it may take")
    length.add_argument(
        "--steps", type=count, metavar="N", help="updates of the weights, in all phases together"
    )
    option(
        "--memory", type=int, default=0, metavar="N", help="characters read before each window, not learnt"
    )
    option("--json", action="store_true", help="print JSON")
    add_loop(recipe, lr="the config's; later phases keep their share", micro_tokens=16_384)
    recipe.set_defaults(run=run)


def minutes(text: str) -> float:
    """A time above 0."""
    try:
        return seconds(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"must be a number of minutes above 0, but is {text!r}") from None


def run(arguments: argparse.Namespace) -> int:
    """Train, and print what came of each phase."""
    out = check_folder("--out", arguments.out or Path(f"char-lm-{arguments.config}"))
    if not arguments.data.expanduser().exists():
        raise bad("--data", "a file or folder that exists", str(arguments.data))
    from longspan.recipes.char_lm.phases import recipe_named
    from longspan.recipes.char_lm.train import METRIC, Settings, train_char_lm
    from longspan.training.ranks import is_first

    began = time.monotonic()
    changes = {name: getattr(arguments, name) for name in ("positions", "steps", "lr")}
    recipe = recipe_named(arguments.config, **changes)
    own = {name: getattr(arguments, name) for name in ("memory", "minutes", "vocabulary")}
    settings = Settings(**own, **shaping(arguments))
    if is_first():
        note(f"model and run are in {out}")
    model, reports = train_char_lm(recipe, arguments.data, out, settings, tell=note, **running(arguments))
    if not is_first():
        return 0
    best = reports[-1].metrics[METRIC]
    if arguments.json:
        phases = [report.to_dict() for report in reports]
        result = {"out": str(out), "parameters": model.num_parameters(), METRIC: best, "phases": phases}
        print(json.dumps(result | {"seconds": time.monotonic() - began}))
    else:
        print(f"{best:.3f} bits per character on the validation split; the model is in {out}")
    return 0
