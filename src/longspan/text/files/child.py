"""The child process: parses one risky file within limits, and exits.

Standard input is the open file; a line of JSON and the text go to standard output. Whatever goes wrong here,
the parent only sees a process that has exited.
"""

import json
import re
import sys
from contextlib import suppress
from importlib import import_module

from longspan.text.files.kinds import PARSED, RECOGNIZED
from longspan.text.files.parsed import MOST_HEADINGS, Refusal

_SURROGATE = re.compile("[\ud800-\udfff]")


def main() -> None:
    """`child.py KIND CHARACTERS MEMORY SECONDS OCR`: answer with the text, or with a refusal."""
    kind, characters, memory, seconds = sys.argv[1], *map(int, sys.argv[2:5])
    options = {"ocr": sys.argv[5]} if kind in RECOGNIZED else {}
    assert kind in PARSED
    text = ""
    try:
        parse = import_module(f"longspan.text.files.{kind}").parse
        restrict(memory, seconds)
        sys.stdin.buffer.seek(0)  # the parent has read the first bytes
        parsed = parse(sys.stdin.buffer, characters, **options)
        text = _SURROGATE.sub("\ufffd", parsed.text)
        answer = {
            "pages": parsed.pages,
            "title": parsed.title,
            "replaced": parsed.replaced,
            "headings": parsed.headings[:MOST_HEADINGS],
            "empty_pages": parsed.empty_pages,
            "hidden": parsed.hidden,
            "places": [list(parsed.places.starts), list(parsed.places.numbers), parsed.places.units],
        }
    except Refusal as refusal:
        answer = {"reason": refusal.reason, "repair": refusal.repair}
    except MemoryError:
        answer = {"reason": f"it needs more than {memory:,} bytes of memory", "repair": ""}
    except Exception as error:  # of a parser, caused by an unforeseen file
        answer = {"reason": f"its parser failed ({type(error).__name__}: {str(error)[:200]})", "repair": ""}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def restrict(memory: int, seconds: int) -> None:
    """Limit what this process may use, for good, where the system can; it may write no files at all."""
    try:
        import resource
    except ImportError:  # Windows: the parent's clock and the parsers' own limits remain
        return
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for which, most in limits.items():
        _, hard = resource.getrlimit(which)
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(OSError, ValueError):  # macOS knows RLIMIT_AS and refuses to set it
            resource.setrlimit(which, (value, value))


if __name__ == "__main__":
    main()
