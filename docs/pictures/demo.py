"""What `make demo` found, drawn as demo.svg and shown in the README: `make demo-picture`."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIRST = 512
WIDTH, EDGE, LEFT, BAR, ROW, LINE, PIN = 860, 28, 224, 14, 32, 25, 8.5
STYLE = """<style>
.card { fill: #ffffff; stroke: #c9d0d8 } .ink { fill: #243241 } .faint { fill: #7f8b99 }
.whole { fill: #b9d0ee } .first { fill: #e3953b } .pin { fill: #3f74bb } .number { fill: #ffffff }
@media (prefers-color-scheme: dark) {
.card { fill: #161b22; stroke: #3d444d } .ink { fill: #e6edf3 } .faint { fill: #9198a1 }
.whole { fill: #2f4a70 } .first { fill: #f0a24c } .pin { fill: #79aef2 } .number { fill: #161b22 } }
</style>"""


def main() -> None:
    """Run the demo, and put its picture and its words where readers see them."""
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder, "facts.json")
        command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--save", str(facts)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        picture = drawn(json.loads(facts.read_text("utf-8")))
    (ROOT / "docs" / "pictures" / "demo.svg").write_text(picture, "utf-8")
    page = ROOT / "README.md"
    page.write_text(filled(page.read_text("utf-8"), done.stdout), "utf-8")


def filled(page: str, shown: str) -> str:
    """The page with the demo's output between its two marks, long lines broken, the home folder as ~."""
    lines = shown.replace(str(Path.home()), "~").strip().split("\n")
    broken = [part for line in lines for part in (wrap(line, 116, subsequent_indent="   ") or [""])]
    block = "\n".join(["<!-- demo: begin -->", "```", *broken, "```", "<!-- demo: end -->"])
    marks = re.compile(r"<!-- demo: begin -->.*?<!-- demo: end -->", re.DOTALL)
    if len(marks.findall(page)) != 1:
        raise SystemExit("README.md must have <!-- demo: begin --> and <!-- demo: end --> once.")
    return marks.sub(lambda _: block, page)


def drawn(facts: dict[str, Any]) -> str:
    """Each document as a bar: its length, the part that short models read, where the answers stand."""
    documents = sorted(facts["documents"], key=lambda document: -document["tokens"])
    counts = [document["tokens"] for document in documents]
    part = sum(min(FIRST, count) for count in counts) / sum(counts)
    title = f"{len(counts)} documents, {sum(counts):,} tokens, three answers"
    top, below = EDGE + 62, EDGE + 74 + ROW * len(documents)
    height = below + LINE * (len(facts["whole"]) - 1) + EDGE
    body = [_text(EDGE, EDGE + 14, title, size=17, weight=600)]
    body += _key(EDGE, "whole", "read by Longspan")
    body += _key(EDGE + 145, "first", f"read by a model that stops after {FIRST} tokens: {100 * part:.1f} %")
    for row, document in enumerate(documents):
        body += _bar(document, top + row * ROW, (WIDTH - LEFT - EDGE - 66) / counts[0], facts["whole"])
    for number, answer in enumerate(facts["whole"], 1):
        y = below + (number - 1) * LINE
        body += _pin(EDGE + PIN, y, number)
        body.append(_text(EDGE + 28, y + 4.5, answer["question"], weight=600))
        body.append(_text(WIDTH - EDGE, y + 4.5, answer["place"], kind="faint", style='text-anchor="end"'))
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="system-ui,Helvetica,Arial,sans-serif" role="img">'
    )
    card = f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="10"/>'
    return "\n".join([opening, f"<title>{escape(title)}</title>", STYLE, card, *body, "</svg>", ""])


def _key(x: float, kind: str, words: str) -> Iterator[str]:
    yield f'<rect class="{kind}" x="{x:g}" y="{EDGE + 29}" width="12" height="12" rx="2.5"/>'
    yield _text(x + 18, EDGE + 39.5, words, kind="faint")


def _bar(document: dict[str, Any], y: float, scale: float, answers: list[dict[str, Any]]) -> Iterator[str]:
    count, size = document["tokens"], document["tokens"] * scale
    yield _text(LEFT - 12, y + BAR - 3, document["file"], style='text-anchor="end"')
    for kind, width in (("whole", size), ("first", min(FIRST, count) * scale)):
        yield f'<rect class="{kind}" x="{LEFT}" y="{y:g}" width="{width:.1f}" height="{BAR}"/>'
    yield _text(LEFT + size + 13, y + BAR - 3, f"{count:,}", kind="faint")
    for number, answer in enumerate(answers, 1):
        if answer["file"] == document["file"]:
            yield from _pin(LEFT + size * answer["start"] / document["characters"], y + BAR / 2, number)


def _pin(x: float, y: float, number: int) -> Iterator[str]:
    yield f'<circle class="pin" cx="{x:.1f}" cy="{y:g}" r="{PIN}"/>'
    yield _text(x, y + 4, str(number), size=11, weight=700, kind="number", style='text-anchor="middle"')


def _text(
    x: float, y: float, words: str, *, size: int = 13, weight: int = 400, kind: str = "ink", style: str = ""
) -> str:
    look = f'class="{kind}" font-size="{size}" font-weight="{weight}" {style}'.rstrip()
    return f'<text x="{x:.1f}" y="{y:g}" {look}>{escape(words)}</text>'


if __name__ == "__main__":
    main()
