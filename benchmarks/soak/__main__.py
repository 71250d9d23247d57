"""`python -m benchmarks.soak search --minutes 30`: does it still work, and in no more memory, after hours?

One file for each kind of soak. Each prints one line of figures for docs/reliability.md, and ends with status
1 if anything was lost or wrong, or memory grew.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.soak import search, training
from benchmarks.soak.result import Result

KINDS: dict[str, Callable[..., Result]] = {"search": search.soak, "training": training.soak}


def main() -> int:
    """Run one kind of soak."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--kills", type=int, default=0, help="go on until there were so many (training)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", metavar="MODEL", help="a folder or a name (default: the built-in model)")
    parser.add_argument("--folder", type=Path, help="where it works (default: a temporary folder)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also save the figures of each round")
    arguments = parser.parse_args()
    if arguments.kills and arguments.kind != "training":
        parser.error("--kills is for training: a soak of search goes on for --minutes")
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).absolute()
        given = folder, arguments.minutes * 60, arguments.seed, arguments.model
        more = {"kills": arguments.kills} if arguments.kills else {}
        result = KINDS[arguments.kind](*given, **more)
    if arguments.json:
        arguments.json.write_text(json.dumps(result.as_dict(), indent=1) + "\n", encoding="utf-8")
    for problem in result.problems:
        print(problem, file=sys.stderr)
    print(result)
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main())
