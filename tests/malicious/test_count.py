"""How many malicious checkpoints there are: distinct payloads, each counted once, however it is packed."""

import re
from pathlib import Path

from malicious import pickles
from malicious.headers import headers
from malicious.test_bundles import TRICKS
from malicious.test_names import NAMES
from malicious.test_texts import TEXTS
from malicious.zips import zips

PAGES = ("docs/models.md", "docs/reliability.md")
HERE = Path("executed")


def payloads() -> dict[str, set[object]]:
    """The payloads of each kind; cut-off files and changed bytes are damage, and do not count."""
    return {
        "pickles": {
            *pickles.calls(HERE).values(),
            *pickles.ways(HERE).values(),
            *pickles.exhausting().values(),
            *pickles.tensors().values(),
        },
        "zip files": set(zips().values()),
        "safetensors headers": set(headers().values()),
        "TensorFlow indexes": set(TRICKS.values()),
        "shard names": set(NAMES),
        "JSON texts": set(TEXTS.values()),
    }


def test_the_documentation_counts_every_payload_once() -> None:
    counts = {kind: len(found) for kind, found in payloads().items()}
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    for page in PAGES:
        text = " ".join((Path(__file__).parents[2] / page).read_text().split())
        (claim,) = re.findall(r"(\d+) distinct malicious", text)
        assert int(claim) == sum(counts.values()), f"{page}: there are {sum(counts.values())} ({told})"
    assert told in text, f"docs/reliability.md must say: {told}"
