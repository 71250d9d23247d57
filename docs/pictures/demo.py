"""What `make demo` found, drawn as demo.svg and shown in the README: `make demo-picture`."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

from longspan.patterns.svg import dot, page, square, text

ROOT = Path(__file__).resolve().parents[2]
FIRST, WHOLE = 512, 0.35  # tokens that a short model reads; how strong the bar of a whole document is
WIDTH, EDGE, LEFT, BAR, ROW, LINE, PIN = 860, 28, 224, 14, 32, 25, 8.5


def main() -> None:
    """Run the demo, and put its picture and its words where readers see them."""
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder, "facts.json")
        command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--save", str(facts)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        picture = drawn(json.loads(facts.read_text("utf-8")))
    (ROOT / "docs" / "pictures" / "demo.svg").write_text(picture, "utf-8")
    readme = ROOT / "README.md"
    answers = [
        each["answer"] for each in json.loads((ROOT / "examples" / "questions.json").read_text("utf-8"))
    ]
    readme.write_text(filled(readme.read_text("utf-8"), shortened(done.stdout, answers)), "utf-8")


def shortened(shown: str, answers: list[str]) -> str:
    """The demo's output without the download and the comparison, and of each passage only the answer.

    That is the marked sentence if it holds the answer.
    """
    blocks = []
    for block in shown.strip().split("\n\n"):
        lines = block.split("\n")
        passage = lines[-1].strip()
        if lines[0].startswith("$ longspan search") and lines[1].startswith("1. "):
            kept = [answer for answer in answers if answer in passage.replace("»", "").replace("«", "")]
            kept += [part for part in re.findall("»[^«]*«", passage) if any(a in part for a in kept)]
            lines = [*lines[:-1], f"   … {kept[-1] if kept else passage[:100]} …"]
        elif lines[0] == "$ longspan pull" or not lines[0].startswith(
            ("$ longspan", "1. ", "The ", "Answers found")
        ):
            continue
        blocks.append("\n".join(lines).removesuffix(" The same search in these starts only:"))
    return "\n\n".join(blocks)


def filled(readme: str, shown: str) -> str:
    """The README with the demo's output between its two marks, long lines broken, the home folder as ~."""
    lines = shown.replace(str(Path.home()), "~").strip().split("\n")
    broken = [part for line in lines for part in (wrap(line, 116, subsequent_indent="   ") or [""])]
    block = "\n".join(["<!-- demo: begin -->", "```", *broken, "```", "<!-- demo: end -->"])
    marks = re.compile(r"<!-- demo: begin -->.*?<!-- demo: end -->", re.DOTALL)
    if len(marks.findall(readme)) != 1:
        raise SystemExit("README.md must have <!-- demo: begin --> and <!-- demo: end --> once.")
    return marks.sub(lambda _: block, readme)


def drawn(facts: dict[str, Any]) -> str:
    """Each document as a bar: its length, the part that short models read, where the answers stand."""
    documents = sorted(facts["documents"], key=lambda document: -document["tokens"])
    counts = [document["tokens"] for document in documents]
    part = sum(min(FIRST, count) for count in counts) / sum(counts)
    title = f"{len(counts)} documents, {sum(counts):,} tokens, three answers"
    top, below = EDGE + 62, EDGE + 74 + ROW * len(documents)
    height = below + LINE * (len(facts["whole"]) - 1) + EDGE
    body = [text(EDGE, EDGE + 14, title, size=17, bold=True)]
    body += _key(EDGE, "p0", WHOLE, "read by Longspan")
    words = f"read by a model that stops after {FIRST} tokens: {100 * part:.1f} %"
    body += _key(EDGE + 145, "p1", 1.0, words)
    for row, document in enumerate(documents):
        body += _bar(document, top + row * ROW, (WIDTH - LEFT - EDGE - 66) / counts[0], facts["whole"])
    for number, answer in enumerate(facts["whole"], 1):
        y = below + (number - 1) * LINE
        body += _pin(EDGE + PIN, y, number)
        body.append(text(EDGE + 28, y + 4.5, answer["question"], size=13, bold=True))
        body.append(text(WIDTH - EDGE, y + 4.5, answer["place"], size=13, kind="faint", anchor="end"))
    return page(title, WIDTH, height, body)


def _key(x: float, kind: str, strength: float, words: str) -> Iterator[str]:
    yield square(kind, x, EDGE + 29, strength)
    yield text(x + 18, EDGE + 39.5, words, size=13, kind="faint")


def _bar(document: dict[str, Any], y: float, scale: float, answers: list[dict[str, Any]]) -> Iterator[str]:
    count, size = document["tokens"], document["tokens"] * scale
    yield text(LEFT - 12, y + BAR - 3, document["file"], size=13, anchor="end")
    for look, width in ((f'"p0" fill-opacity="{WHOLE}"', size), ('"p1"', min(FIRST, count) * scale)):
        yield f'<rect class={look} x="{LEFT}" y="{y:g}" width="{width:.1f}" height="{BAR}"/>'
    yield text(LEFT + size + 13, y + BAR - 3, f"{count:,}", size=13, kind="faint")
    for number, answer in enumerate(answers, 1):
        if answer["file"] == document["file"]:
            yield from _pin(LEFT + size * answer["start"] / document["characters"], y + BAR / 2, number)


def _pin(x: float, y: float, number: int) -> Iterator[str]:
    yield dot("p0", x, y, PIN)
    yield text(x, y + 4, str(number), size=11, bold=True, kind="paper", anchor="middle")


if __name__ == "__main__":
    main()
