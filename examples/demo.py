"""Whole books, read and searched: the commands as you type them, then what a 512-token model would find.

Run by `make demo`. The second run finds the model and the index in place and takes seconds, offline.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import longspan as ls
from longspan.text.documents import read

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS, INDEX = "examples/documents", "build/demo"
FILES = sorted((ROOT / DOCUMENTS).iterdir())
QUESTIONS: list[dict[str, str]] = json.loads((ROOT / "examples" / "questions.json").read_text("utf-8"))
FIRST = 512
"""Tokens that many models read of a document, silently dropping the rest."""


def main() -> None:
    """Fetch the model, read the documents, ask the questions, compare."""
    parser = argparse.ArgumentParser(description="Read the documents of examples/ whole, and search them.")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write what was found as JSON")
    arguments = parser.parse_args()
    began = time.perf_counter()
    longspan("pull")
    longspan("index", DOCUMENTS, "--index", INDEX, *(["--rebuild"] if outdated() else []))
    for question in QUESTIONS:
        longspan("search", question["question"], "--index", INDEX, "--top", "1")
    with ls.Index.open(ROOT / INDEX) as index:
        facts = compared(index)
    report(facts)
    print(f"\nAll of this took {time.perf_counter() - began:.0f} s. Now ask your own:")
    print(f'.venv/bin/longspan search "Where was the key to the garden?" --index {INDEX}')
    if arguments.save:
        arguments.save.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def longspan(*arguments: str) -> None:
    """Print a `longspan` command as you would type it, and run it at the top of the repository."""
    typed = [f'"{word}"' if " " in word else word for word in arguments]
    print("$ longspan", *typed, flush=True)
    command = [sys.executable, "-m", "longspan", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    print(done.stdout.replace(f"{ROOT}/", ""), flush=True)
    unsure = arguments[0] == "search" and done.returncode == 1 and done.stdout  # it shows its best tries
    if done.returncode and not unsure:
        sys.exit(f"demo: `longspan {arguments[0]}` did not succeed; its own words stand above.")


def outdated() -> bool:
    """Whether there is an index that this version of Longspan or this model cannot use."""
    if not (ROOT / INDEX).exists():
        return False
    try:
        with ls.Index.open(ROOT / INDEX) as index:
            return index.reader is None
    except ls.LongspanError:
        return True


def compared(index: ls.Index) -> dict[str, Any]:
    """The lengths of the documents; the best passage for each question in them, and in their first tokens."""
    documents = [read(path) for path in FILES]
    encodings = index.reader.tokenizer.encode_many([document.text for document in documents])
    with tempfile.TemporaryDirectory() as folder:
        for path, document, encoding in zip(FILES, documents, encodings, strict=True):
            end = encoding.offsets[: FIRST - 1, 1].max()  # the last would be the closing token
            Path(folder, f"{path.stem}.txt").write_text(document.text[:end], "utf-8")
        with ls.Index.open(Path(folder, "index"), index.reader) as starts:
            starts.add(Path(folder).glob("*.txt"), progress=False)
            first = [answer(starts, question) for question in QUESTIONS]
    sizes = [
        {"file": path.name, "characters": len(document), "tokens": len(encoding)}
        for path, document, encoding in zip(FILES, documents, encodings, strict=True)
    ]
    return {"documents": sizes, "whole": [answer(index, question) for question in QUESTIONS], "first": first}


def answer(index: ls.Index, question: dict[str, str]) -> dict[str, Any]:
    """The best passage for a question, and whether it holds the answer."""
    hit = index.search(question["question"], 1)[0]
    name = next(path.name for path in FILES if path.stem == hit.file.stem)
    right = name == question["file"] and question["answer"] in " ".join(hit.text.split())
    return question | {"file": name, "place": f"{name}, {hit.where}", "start": hit.start, "right": right}


def report(facts: dict[str, Any]) -> None:
    """Print both ways of reading, one above the other."""
    counts = [document["tokens"] for document in facts["documents"]]
    total, part = sum(counts), 100 * sum(min(FIRST, count) for count in counts) / sum(counts)
    print(f"The {len(counts)} documents have {total:,} tokens. Many models read the first {FIRST} of each")
    print(f"and drop the rest without a word: they see {part:.1f} %. The same search in these starts only:\n")
    for whole, first in zip(facts["whole"], facts["first"], strict=True):
        print(whole["question"])
        for how, best in (("read whole", whole), (f"first {FIRST}", first)):
            says = f'"{best["answer"]}"' if best["right"] else "no answer there"
            print(f"   {how:12}{best['place']}: {says}")
    right = [sum(best["right"] for best in facts[way]) for way in ("whole", "first")]
    print(f"\nAnswers found: {right[0]} of {len(QUESTIONS)} in whole documents, {right[1]} in their starts.")


if __name__ == "__main__":
    main()
