"""Two runs of one suite, as pytest's --junitxml wrote them: which tests came out differently.

python compare.py plain.xml swapped.xml [names of tests that may come out differently]
"""

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path


def outcomes(report: Path) -> dict[str, str]:
    """Every test and how it ended."""
    found = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        ends = [part.tag for part in case if part.tag in ("failure", "error", "skipped")]
        found[f"{case.get('classname')}.{case.get('name')}"] = ends[0] if ends else "passed"
    return found


def differences(plain: dict[str, str], swapped: dict[str, str]) -> list[str]:
    """A line for each test that came out differently, or ran only once.

    >>> differences({"a": "passed", "b": "failure"}, {"a": "failure", "b": "failure"})
    ['a: passed, then failure']
    """
    names = sorted(plain.keys() | swapped.keys())
    ends = [(name, plain.get(name, "not run"), swapped.get(name, "not run")) for name in names]
    return [f"{name}: {a}, then {b}" for name, a, b in ends if a != b]


def main(reports: list[str], but: list[str]) -> int:
    """Print both counts and all differences, without some tests; 1 if there are any, or if none passed."""
    plain, swapped = (
        {name: end for name, end in outcomes(Path(report)).items() if name.split(".")[-1] not in but}
        for report in reports
    )
    for name, run in (("plain", plain), ("swapped", swapped)):
        print(
            f"{name}: {', '.join(f'{count} {end}' for end, count in sorted(Counter(run.values()).items()))}"
        )
    found = differences(plain, swapped)
    none = "passed" not in plain.values()
    print("\n".join(found) or ("no test passed" if none else "no test came out differently"))
    return bool(found) or none


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:3], sys.argv[3:]))
