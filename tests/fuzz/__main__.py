"""`make fuzz`: every subject in turn for some minutes; a failing input is kept, with its seed."""

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

from fuzz.harness import watched

SUBJECTS = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__main__", "harness", "mutations", "wrong", "test_fuzz")
)


def main() -> int:
    """1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument(
        "subjects", nargs="*", default=SUBJECTS, help=f"of {', '.join(SUBJECTS)} (default: all)"
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="for each subject (default: 5)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--case", type=int, help="only the case of this number")
    options = parser.parse_args()
    failed = False
    for subject in options.subjects:
        module = import_module(f"fuzz.{subject}")
        if hasattr(module, "make"):
            first, cases = (0, 1 << 40) if options.case is None else (options.case, 1)
            result = watched(module.__name__, 60 * options.minutes, options.seed, first, cases)
            print(result, *result.failures, sep="\n", flush=True)
            failed |= bool(result.failures)
            continue
        try:
            cases = module.fuzz(60 * options.minutes, options.seed)
            print(f"{subject}: {cases:,} cases (seed {options.seed})", flush=True)
        except AssertionError as error:
            print(f"{subject} (seed {options.seed}): {error}", flush=True)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
