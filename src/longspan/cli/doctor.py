"""`longspan doctor`: what this machine offers, which backend serves, and whether it computes correctly."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from longspan.cli.parsing import Verb


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "doctor",
        help="examine this machine and this installation",
        examples=["longspan doctor", "longspan doctor --json > report.json"],
    )
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the report; fails if a backend computes wrongly."""
    from longspan.cli.health import examine

    report = examine()
    print(json.dumps(report, indent=1) if arguments.json else "\n".join(lines(report)))
    return 0 if all(result["passed"] for result in report["trial"].values()) else 1


def lines(report: dict[str, Any]) -> Iterator[str]:
    """The report for people."""
    cpu, native = report["cpu"], report["native"]
    yield _row("versions", ", ".join(f"{name} {version}" for name, version in report["versions"].items()))
    yield _row("cpu", f"{cpu['model']}, {cpu['cores']} cores")
    yield _row("features", " ".join(cpu["features"]) or "none known")
    yield _row("amx", AMX[cpu["amx"]])
    if native["available"]:
        yield _row("native core", f"{native['target']} (compiled: {', '.join(native['compiled'])})")
    else:
        yield _row("native core", f"missing: {native['reason']}.")
        yield _row("", "The portable backend is in use: same results, less speed.")
        yield _row("", native["repair"])
    threads = report["threads"]
    yield _row("threads", f"{threads['count']} (torch.set_num_threads changes it)")
    yield ""
    yield from _backends(report["backends"])
    yield ""
    yield "self-test: float32, 1,024 tokens, 4 heads x 64, radius 128, one global token"
    for name, result in report["trial"].items():
        verdict = "ok" if result["passed"] else "WRONG"
        speed = f"{result['milliseconds']:.2f} ms, {result['gflops']:.1f} GFLOP/s"
        yield _row(name, f"{verdict}, error {result['error']:.1e}, {speed}")


AMX = {
    "absent": "not advertised by this CPU",
    "works": "works",
    "traps": "advertised, but traps: a bfloat16 matrix product in torch kills the process here; "
    "Longspan's bfloat16 attention does not use it",
    "unknown": "advertised; only the native core can tell whether it works",
}


def _backends(table: dict[str, dict[str, list[str]]]) -> Iterator[str]:
    """A tick for each backend and dtype; the reasons below."""
    dtypes = list(next(iter(table.values())))
    yield _row("backend", "".join(f"{dtype:10}" for dtype in dtypes))
    for name, refusals in table.items():
        yield _row(name, "".join(f"{'no' if refusals[dtype] else 'yes':10}" for dtype in dtypes))
    yield "The first that says yes is chosen."
    for name, refusals in table.items():
        for reason in dict.fromkeys(reason for reasons in refusals.values() for reason in reasons):
            yield f"  {name} refuses: {reason}"


def _row(label: str, value: str) -> str:
    return f"{label:14}{value}".rstrip()
