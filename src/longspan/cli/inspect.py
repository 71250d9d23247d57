"""`longspan draw` and `explain`: what models and patterns look like, allow and cost."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli.options import check_file, check_folder, count
from longspan.cli.parsing import Verb
from longspan.cli.terminal import is_quiet
from longspan.errors import bad, missing, whole

if TYPE_CHECKING:
    from longspan.layout import Layout

MOST_DRAWN, MOST_EXPLAINED = 2**13, 2**24
"""Tokens."""
ENDINGS = {"text": "txt", "svg": "svg"}
FORMS = "a name from the gallery, an expression such as 'Window(256) | GlobalTokens()', or JSON"
MODELS = "a model: a folder, a name on the hub, or a preset such as longformer-base or default"


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verbs."""
    drawing = verbs.add_parser(
        "draw",
        help="draw patterns, or all layers of a model, as text or SVG",
        examples=[
            "longspan draw longformer-base",
            "longspan draw 'Window(4) | GlobalTokens()' --length 40 --marked 0",
            "longspan draw --svg --out pictures/",
        ],
    )
    drawing.add_argument(
        "what", nargs="*", metavar="WHAT", help=f"{MODELS}; or {FORMS} (default: the gallery)"
    )
    _add_layout(drawing, "length of each document (default: what suits the picture)")
    style = drawing.add_mutually_exclusive_group()
    style.add_argument("--svg", action="store_const", const="svg", dest="style", help="draw SVG")
    style.add_argument("--text", action="store_const", const="text", dest="style", help="draw text (default)")
    drawing.add_argument("--out", type=Path, metavar="PATH", help="a file, or a folder for several pictures")
    drawing.set_defaults(run=draw, style="text")

    explaining = verbs.add_parser(
        "explain",
        help="say what a model or patterns compute, reach and cost",
        examples=[
            "longspan explain longformer-base --length 4096",
            "longspan explain 'Window(256)' --repeat 12 --json",
        ],
    )
    explaining.add_argument(
        "what", nargs="+", metavar="WHAT", help=f"{MODELS}; or patterns, the first layer first: {FORMS}"
    )
    _add_layout(explaining, "length of each document (default: 4096, or what the model reads)")
    explaining.add_argument(
        "--repeat", type=count, metavar="N", help="stack the patterns N times (default: 1)"
    )
    explaining.add_argument(
        "--heads", type=count, metavar="N", help="heads of patterns (default: what one lists, or 12)"
    )
    explaining.add_argument("--size", type=count, metavar="D", help="head size of patterns (default: 64)")
    explaining.add_argument(
        "--gflops",
        type=_rates,
        metavar="N[,N]",
        help="speed in linear layers and in attention (default: measured here)",
    )
    explaining.add_argument("--json", action="store_true", help="print JSON")
    explaining.set_defaults(run=explain)


def _add_layout(verb: argparse.ArgumentParser, lengths: str) -> None:
    verb.add_argument("--length", type=_numbers, metavar="N,...", help=lengths)
    verb.add_argument("--marked", type=_numbers, metavar="I,...", help="global tokens of each document")


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be whole numbers with commas between, but is {text!r}"
        ) from None


def _rates(text: str) -> float | tuple[float, float]:
    try:
        rates = [float(number) for number in text.split(",")]
    except ValueError:
        rates = []
    match rates:
        case [rate]:
            return rate
        case [linear, attention]:
            return linear, attention
    raise argparse.ArgumentTypeError(f"must be one number or two with a comma between, but is {text!r}")


def _check_length(lengths: list[int] | None, most: int, repair: str = "") -> None:
    """Refuse documents that would take hours, before anything is computed for them."""
    for length in [*(lengths or ()), sum(lengths or ())]:
        if whole("--length", length, 0) > most:
            raise bad("--length", f"at most {most}", length, repair)


def _layout(lengths: list[int], marked: list[int] | None) -> "Layout":
    from longspan.layout import Layout

    return Layout.packed(lengths, marked=None if marked is None else [marked] * len(lengths))


def draw(arguments: argparse.Namespace) -> int:
    """Print or save the pictures."""
    from longspan.cli.expression import is_model, pattern
    from longspan.patterns import gallery

    known = gallery()
    names = list(dict.fromkeys(arguments.what or known))
    for text in names:
        if not is_model(text):
            pattern(text)
    _check_length(arguments.length, MOST_DRAWN, "Draw a shorter document.")
    if arguments.out is None and arguments.style == "svg" and len(names) > 1:
        raise missing("--out", "a folder for several SVG pictures", "Name one pattern to print it.")
    if arguments.out is not None:
        arguments.out = (check_file if len(names) == 1 else check_folder)("--out", arguments.out)
    pictures = {text: _picture(text, arguments) for text in names}
    if arguments.out is None:
        print("\n\n".join(f"{name}: {text}" if name in known else text for name, text in pictures.items()))
    elif len(pictures) == 1:
        _save(arguments.out, *pictures.values())
    else:
        arguments.out.mkdir(parents=True, exist_ok=True)
        for number, (name, text) in enumerate(pictures.items(), 1):
            named = name in known or is_model(name)
            stem = Path(name).name if named else f"pattern-{number}"
            _save(arguments.out / f"{stem}.{ENDINGS[arguments.style]}", text)
    return 0


def _picture(text: str, arguments: argparse.Namespace) -> str:
    """Pictures of the gallery have rows of their own, unless others are asked for."""
    from longspan.cli.expression import is_model, pattern
    from longspan.patterns import gallery

    if is_model(text):
        from longspan.inspect.picture import draw as draw_model

        picture = draw_model(text, _only(arguments.length), marked=arguments.marked)
        return picture.svg() if arguments.style == "svg" else picture.text()
    if text in gallery() and arguments.length is None and arguments.marked is None:
        return gallery()[text].draw(arguments.style)
    return pattern(text).draw(_layout(arguments.length or [40], arguments.marked), style=arguments.style)


def _save(path: Path, text: str) -> None:
    from longspan.search.results import printable

    path.write_text(text, encoding="utf-8")
    if not is_quiet():
        print(f"wrote {printable(str(path))}")


def explain(arguments: argparse.Namespace) -> int:
    """Print what a model or a stack of patterns costs; of a single pattern also its words and its plan."""
    from longspan.cli.expression import is_model, pattern
    from longspan.engine.plan import plan
    from longspan.inspect.report import explain as report_on

    _check_length(arguments.length, MOST_EXPLAINED)
    options = {"heads": arguments.heads, "head_size": arguments.size, "gflops": arguments.gflops}
    if any(is_model(text) for text in arguments.what):
        if len(arguments.what) > 1:
            raise bad("WHAT", "one model, or patterns alone", arguments.what)
        if arguments.repeat is not None:
            raise bad("--repeat", "given for patterns only", arguments.repeat)
        report = report_on(arguments.what[0], _only(arguments.length), marked=arguments.marked, **options)
        parts = [str(report)]
    else:
        repeat = 1 if arguments.repeat is None else arguments.repeat
        layers = [pattern(text) for text in arguments.what]
        report = report_on(layers * repeat, _layout(arguments.length or [4096], arguments.marked), **options)
        parts = [str(report)]
        if len(layers) == 1:
            planned = plan(layers[0], report.layout, heads=report.subject.config.heads)
            parts = [layers[0].explain(), str(report), planned.explain()]
    print(json.dumps(report.as_json()) if arguments.json else "\n\n".join(parts))
    return 0


def _only(lengths: list[int] | None) -> int | None:
    """The length of the only document that a model is inspected with."""
    if lengths is not None and len(lengths) > 1:
        raise bad("--length", "one number for a model", lengths)
    return lengths[0] if lengths else None
