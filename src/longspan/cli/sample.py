"""`longspan sample DIR --prompt TEXT`: let a language model write on, character by character."""

import argparse
import codecs
import json
import time

from longspan.cli.options import count
from longspan.cli.parsing import Verb
from longspan.cli.terminal import is_terminal
from longspan.errors import bad


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "sample",
        help="let a language model of bytes write on",
        examples=[
            'longspan sample run --prompt "The history of "',
            'longspan sample run --prompt "== See also ==" --length 2000 --temperature 0.8 --seed 1',
        ],
    )
    option = verb.add_argument
    option("model", metavar="DIR", help="what `longspan train char-lm` made")
    option("--prompt", default="\n", metavar="TEXT", help="what the text begins with (default: a new line)")
    option("--length", type=count, default=500, metavar="N", help="bytes to write (default: 500)")
    option("--greedy", action="store_true", help="take the likeliest byte instead of sampling")
    option("--temperature", type=float, default=1.0, metavar="T", help="below 1 is less random (default: 1)")
    option("--top-k", type=count, metavar="N", help="sample from so many bytes")
    option("--top-p", type=float, metavar="P", help="sample from the likeliest bytes of this probability")
    option("--seed", type=int, default=0, metavar="N", help="the same seed gives the same text (default: 0)")
    option("--json", action="store_true", help="print JSON at the end")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the text as it is written."""
    import numpy as np
    import torch

    from longspan.families.char_lm.model import config_of, decode, encode
    from longspan.families.char_lm.stream import Stream
    from longspan.generation.config import GenerationConfig
    from longspan.generation.streaming import stream
    from longspan.recipes.char_lm.load import load_char_lm

    options = {"temperature": arguments.temperature, "top_k": arguments.top_k, "top_p": arguments.top_p}
    chosen = {} if arguments.greedy else {"do_sample": True, **options}
    config = GenerationConfig(max_new_tokens=arguments.length, **chosen)
    if not arguments.prompt:
        raise bad("--prompt", "at least one character long", "empty")
    model = load_char_lm(arguments.model)
    known = config_of(model)
    given = np.frombuffer(arguments.prompt.encode("utf-8", "surrogateescape"), np.uint8)
    prompt = encode(known, given, "--prompt")
    began, generator = time.monotonic(), torch.Generator().manual_seed(arguments.seed)
    _show(arguments.prompt, [], arguments.json)
    decoder, pieces = codecs.getincrementaldecoder("utf-8")("replace"), list[str]()
    for token in stream(Stream(model), prompt, config, generator=generator):
        _show(decoder.decode(decode(known, [token])), pieces, arguments.json)
    _show(decoder.decode(b"", final=True), pieces, arguments.json)
    if arguments.json:
        result = {"prompt": arguments.prompt, "text": "".join(pieces), "bytes": arguments.length}
        print(json.dumps(result | {"seconds": time.monotonic() - began}))
    else:
        print()
    return 0


def _show(piece: str, pieces: list[str], collected: bool) -> None:
    """Print what is new, or keep it; a terminal is not shown what it would obey."""
    if collected:
        pieces.append(piece)
    elif piece:
        from longspan.search.highlight import printable

        shown = "\n".join(map(printable, piece.split("\n"))) if is_terminal() else piece
        print(shown, end="", flush=True)
