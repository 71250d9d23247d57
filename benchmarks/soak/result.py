"""What a soak measures: counts, problems, and whether memory stays what it was."""

import ctypes
import gc
import os
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

GROWTH, SLACK = 1.05, 20e6
"""Memory may be this many times what it was, and some bytes more."""


@dataclass
class Result:
    """The figures of a soak."""

    kind: str
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)
    "Bytes that this process uses after each round: without what the allocator keeps for later use."
    resident: list[int] = field(default_factory=list)
    "The same with it."
    files: list[int] = field(default_factory=list)
    "Open files after each round."
    problems: list[str] = field(default_factory=list)

    def measure(self) -> None:
        """Note what this process takes now."""
        self.resident.append(resident())
        trim()
        self.memory.append(resident())
        self.files.append(open_files())

    def finish(self) -> None:
        """Memory and open files may grow in the first quarter, while all is loaded, but not after it."""
        begin, end = self.ends(self.memory)
        if end > GROWTH * begin + SLACK:
            self.problems.append(f"memory grew from {begin / 1e6:.0f} to {end / 1e6:.0f} MB")
        begin, end = self.ends(self.files)
        if end > begin + 2:
            self.problems.append(f"open files grew from {begin:.0f} to {end:.0f}")

    def ends(self, values: list[int]) -> tuple[float, float]:
        """The median of the second quarter, and that of the last one."""
        quarter = max(1, len(values) // 4)
        return median(values[quarter : 2 * quarter] or values or [0]), median(values[-quarter:] or [0])

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {**vars(self), "counts": dict(self.counts)}

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        begin, end = (value / 1e6 for value in self.ends(self.memory))
        state = f"{len(self.problems)} problems" if self.problems else "nothing lost, nothing wrong"
        memory = f"memory in use {begin:.0f} MB in the second quarter, {end:.0f} MB in the last"
        most = f"resident at most {max(self.resident, default=0) / 1e6:.0f} MB"
        return f"soak {self.kind}: {self.seconds / 60:.1f} minutes, {counts}; {state}; {memory}; {most}"


def resident() -> int:
    """Bytes of memory that this process takes."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # no Linux: the most that it has taken
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def trim() -> None:
    """Collect garbage, and let the allocator give back to the system what it keeps, where it can."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # glibc's


def open_files() -> int:
    """How many files this process has open; 0 where that cannot be told."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0
