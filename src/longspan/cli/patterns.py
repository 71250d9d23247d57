"""`longspan draw`, `explain` and `report`: what patterns and models look like, allow and cost."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.errors import bad, whole

if TYPE_CHECKING:
    from longspan.layout import Layout
    from longspan.patterns import Pattern

ENDINGS = {"text": "txt", "svg": "svg"}
FORMS = "a name from the gallery, an expression such as 'Window(256) | GlobalTokens()', or JSON"
MODELS = "a model: a folder, a name on the hub, or a preset such as longformer-base or default"


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verbs."""
    drawing = verbs.add_parser("draw", help="draw patterns, or all layers of a model, as text or SVG")
    drawing.add_argument(
        "patterns", nargs="*", metavar="WHAT", help=f"{MODELS}; or {FORMS} (default: the gallery)"
    )
    _add_layout(drawing, None, "length of each document (default: what suits the picture)")
    style = drawing.add_mutually_exclusive_group()
    style.add_argument("--svg", action="store_const", const="svg", dest="style", help="draw SVG")
    style.add_argument("--text", action="store_const", const="text", dest="style", help="draw text (default)")
    drawing.add_argument("--out", type=Path, metavar="PATH", help="a file, or a folder for several pictures")
    drawing.set_defaults(run=draw, style="text")

    explaining = verbs.add_parser("explain", help="say what a model or a pattern computes and what it costs")
    explaining.add_argument("pattern", metavar="WHAT", help=f"{MODELS}; or {FORMS}")
    _add_layout(explaining, None, "length of each document (default: 4096, or what the model reads)")
    _add_heads(explaining)
    explaining.add_argument(
        "--gflops",
        type=_rates,
        metavar="N[,N]",
        help="a model's speed in linear layers and in attention (default: measured here)",
    )
    explaining.add_argument("--json", action="store_true", help="print JSON")
    explaining.set_defaults(run=explain)

    reporting = verbs.add_parser("report", help="say what a stack of layers costs and how far it reaches")
    reporting.add_argument("patterns", nargs="+", metavar="PATTERN", help=f"{FORMS}, the first layer first")
    _add_layout(reporting, [4096], "length of each document (default: 4096)")
    _add_heads(reporting)
    reporting.add_argument("--repeat", type=int, default=1, metavar="N", help="stack the patterns N times")
    reporting.add_argument("--size", type=int, default=64, metavar="D", help="head size (default: 64)")
    reporting.set_defaults(run=report)


def _add_layout(verb: argparse.ArgumentParser, default: list[int] | None, lengths: str) -> None:
    verb.add_argument("--length", type=_numbers, default=default, metavar="N,...", help=lengths)
    verb.add_argument("--marked", type=_numbers, metavar="I,...", help="global tokens of each document")


def _add_heads(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--heads", type=int, metavar="N", help="heads (default: what a pattern lists, or 12)")


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be whole numbers with commas between, but is {text!r}"
        ) from None


def _rates(text: str) -> tuple[float, ...]:
    try:
        rates = tuple(float(number) for number in text.split(","))
    except ValueError:
        rates = ()
    if not 1 <= len(rates) <= 2:
        raise argparse.ArgumentTypeError(f"must be one number or two with a comma between, but is {text!r}")
    return rates


def _layout(lengths: list[int], marked: list[int] | None) -> "Layout":
    from longspan.layout import Layout

    return Layout.packed(lengths, marked=None if marked is None else [marked] * len(lengths))


def draw(arguments: argparse.Namespace) -> int:
    """Print or save the pictures."""
    from longspan.cli.expression import is_model
    from longspan.patterns import gallery

    known = gallery()
    pictures = {text: _picture(text, arguments) for text in arguments.patterns or known}
    if arguments.out is None:
        if arguments.style == "svg" and len(pictures) > 1:
            raise bad("--out", "a folder for several SVG pictures", None, "Name one pattern to print it.")
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

        picture = draw_model(text, _one(arguments.length), marked=arguments.marked)
        return picture.svg() if arguments.style == "svg" else picture.text()
    if text in gallery() and arguments.length is None and arguments.marked is None:
        return gallery()[text].draw(arguments.style)
    return pattern(text).draw(_layout(arguments.length or [40], arguments.marked), style=arguments.style)


def _save(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path}")


def explain(arguments: argparse.Namespace) -> int:
    """Print a model's costs; or a pattern in words, and its plan."""
    from longspan.cli.expression import is_model, pattern

    if is_model(arguments.pattern):
        return _explain_model(arguments)
    if arguments.gflops is not None:
        raise bad("--gflops", "given for models only", arguments.gflops)
    from longspan.engine.plan import plan

    one = pattern(arguments.pattern)
    made = plan(one, _layout(arguments.length or [4096], arguments.marked), heads=_heads(arguments, one))
    if arguments.json:
        pairs = {"useful": made.pairs_allowed, "computed": made.pairs_computed, "full": made.pairs_dense}
        told = {"pattern": one.to_json(), "words": one.explain(), "heads": made.heads}
        print(json.dumps(told | {"pairs": pairs, "plan_bytes": made.arrays.nbytes}))
    else:
        print(f"{one.explain()}\n\n{made.explain()}")
    return 0


def _explain_model(arguments: argparse.Namespace) -> int:
    from longspan.inspect.report import explain as explain_model

    if arguments.heads is not None:
        raise bad("--heads", "given for patterns only, as a model has its own", arguments.heads)
    told = explain_model(
        arguments.pattern, _one(arguments.length), marked=arguments.marked, gflops=arguments.gflops
    )
    print(json.dumps(told.as_json()) if arguments.json else told)
    return 0


def _one(lengths: list[int] | None) -> int | None:
    """The length of the only document that a model is looked at with."""
    if lengths is not None and len(lengths) > 1:
        raise bad("--length", "one number for a model", lengths)
    return lengths[0] if lengths else None


def report(arguments: argparse.Namespace) -> int:
    """Print receptive field, pairs, memory and time of the layers, and their graphs."""
    from longspan.cli.expression import pattern
    from longspan.engine.report import report as report_on

    layers = [pattern(text) for text in arguments.patterns] * whole("--repeat", arguments.repeat, 1)
    layout = _layout(arguments.length, arguments.marked)
    print(report_on(layers, layout, heads=_heads(arguments, *layers), size=arguments.size))
    return 0


def _heads(arguments: argparse.Namespace, *patterns: "Pattern") -> int:
    """As many as asked for, or as a pattern lists, or twelve as in base models."""
    if arguments.heads is not None:
        return int(arguments.heads)
    return next((one.heads_declared for one in patterns if one.heads_declared), 12)
