"""`longspan lengthen`: make a short encoder read long documents."""

import argparse
from pathlib import Path

from longspan.errors import bad

BLOCK = "size of blocks (bigbird: 64, stitched: 128), or tokens for each global token (etc: there are none)"


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser("lengthen", help="make a short encoder read long documents")
    verb.add_argument("source", metavar="SOURCE", help="a folder, or the name of a model on the hub")
    length = "tokens to read (default: 4096, with a decoder 16384)"
    verb.add_argument("--to", type=int, metavar="N", help=length)
    verb.add_argument("--out", type=Path, metavar="DIR", help="where to write it (default: only compare)")
    verb.add_argument(
        "--pattern",
        "--to-pattern",
        default="longformer",
        help="longformer (default), bigbird, etc, poolingformer or stitched",
    )
    verb.add_argument("--radius", metavar="N", help="tokens seen on each side; or one number for each layer")
    verb.add_argument("--block", type=int, metavar="N", help=BLOCK)
    verb.add_argument(
        "--stitching", type=int, metavar="N", help="stitched: layers that see across blocks (2)"
    )
    verb.add_argument("--salience", action="store_true", help="stitched: rare words of BERT's count more")
    verb.add_argument("--wide-radius", type=int, metavar="N", help="poolingformer: of its second level (512)")
    verb.add_argument(
        "--two-level", metavar="N,N", help="poolingformer: layers with a second level (a quarter)"
    )
    verb.add_argument("--pooling", help="poolingformer: ldconv (default), mean or max")
    verb.add_argument("--positions", default="copy", help="copy (default), interpolate or random")
    verb.add_argument("--period", type=int, metavar="N", help="copy the first N positions only")
    verb.add_argument(
        "--task", help="encode, fill, classify, tag, answer, choose or summarise (default: the model's)"
    )
    verb.add_argument("--force", action="store_true", help="replace a model that is there")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Lengthen it and print the report."""
    radius, layers = _numbers("--radius", arguments.radius), _numbers("--two-level", arguments.two_level)
    second = {
        "wide_radius": arguments.wide_radius,
        "two_level": None if layers is None else layers if isinstance(layers, tuple) else (layers,),
        "pooling": arguments.pooling,
    }
    from longspan.checkpoints.lengthen import lengthen
    from longspan.checkpoints.salience import shipped

    report = lengthen(
        arguments.source,
        arguments.to,
        out=arguments.out,
        pattern=arguments.pattern,
        radius=radius,
        block=arguments.block,
        positions=arguments.positions,
        period=arguments.period,
        stitching=arguments.stitching,
        salience=shipped() if arguments.salience else None,
        second={name: value for name, value in second.items() if value is not None},
        task=arguments.task,
        force=arguments.force,
    )
    if arguments.json:
        import json

        print(json.dumps(report.as_json(), indent=1))
    else:
        print(report)
    return 0


def _numbers(option: str, given: str | None) -> int | tuple[int, ...] | None:
    """A number, or several with commas between."""
    if given is None:
        return None
    try:
        numbers = tuple(map(int, given.split(",")))
    except ValueError:
        raise bad(option, "a whole number, or several with commas between", given) from None
    return numbers[0] if len(numbers) == 1 else numbers
