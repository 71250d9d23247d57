"""`longspan encode FILE... --out vectors.npy`: one vector for each document, read whole."""

import argparse
import json
import os
from pathlib import Path

from longspan.cli.inputs import Failures, files, report_failures, text_of


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "encode",
        help="one vector for each document",
        epilog="example: longspan encode report.txt minutes.md --out vectors.npy",
    )
    verb.add_argument("paths", nargs="+", metavar="FILE", help="files and folders; - alone is standard input")
    verb.add_argument("--out", type=Path, required=True, metavar="FILE.npy", help="the vectors, (files, C)")
    verb.add_argument("--model", metavar="MODEL", default="default", help="a folder or a name on the hub")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the vectors and print which row is which file; 3 if some files could not be read."""
    import numpy as np

    from longspan.reader import load
    from longspan.search.results import printable

    failed: Failures = []
    read = {str(path): text_of(path, failed) for path in files(arguments.paths, failed)}
    texts = {name: text for name, text in read.items() if text is not None}
    reader = load(arguments.model, task="encode", overflow="window")
    details = reader.encode_with_details(list(texts.values()), prompt_name=reader.document_prompt_name)
    vectors = [one.pop("sentence_embedding") for one in details]
    table = np.stack(vectors) if vectors else np.zeros((0, reader.model.config.width), np.float32)
    temporary = arguments.out.with_name(f".{arguments.out.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as out:
            np.save(out, table)
        temporary.replace(arguments.out)
    finally:
        temporary.unlink(missing_ok=True)
    rows = [{"row": i, "file": name} | one for i, (name, one) in enumerate(zip(texts, details, strict=True))]
    if arguments.json:
        print(json.dumps({"out": str(arguments.out), "shape": table.shape, "rows": rows, "failed": failed}))
    else:
        for row in rows:
            print(f"{row['row']}\t{row['n_tokens']} tokens\t{printable(str(row['file']))}")
    return report_failures(failed)
