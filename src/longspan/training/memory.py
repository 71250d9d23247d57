"""How much memory the process has had at its highest."""

import re
import sys
from contextlib import suppress
from pathlib import Path


def forget_peak() -> None:
    """Let the highest count from now on, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """Bytes; 0 where the system does not tell."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return 1024 * int(found[1])
    try:
        import resource
    except ImportError:  # Windows
        return 0
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size
