"""`longspan encode FILE... --out vectors.npy`: one vector for each document, read whole."""

import argparse
import json
import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli.inputs import DOCUMENTS, Failures, files, report_failures, text_of
from longspan.cli.options import (
    add_adapter,
    add_limits,
    add_model,
    add_ocr,
    check_file,
    check_model,
    limits_of,
)
from longspan.cli.parsing import Verb

if TYPE_CHECKING:
    from longspan.shapes import Matrix


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "encode",
        help="one vector for each document",
        examples=[
            "longspan encode report.txt minutes.md --out vectors.npy",
            "longspan encode docs/ --out vectors.npy --json > rows.json",
            "pdftotext report.pdf - | longspan encode - --out vector.npy",
        ],
    )
    verb.add_argument("paths", nargs="+", metavar="FILE", help=DOCUMENTS)
    verb.add_argument("--out", type=Path, required=True, metavar="FILE.npy", help="the vectors, (files, C)")
    add_model(verb)
    add_adapter(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")
    add_ocr(verb)
    add_limits(verb, at_once=True)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the vectors and print which row is which file; 3 if some files could not be read."""
    import numpy as np

    from longspan.loading import load
    from longspan.search.results import printable

    failed: Failures = []
    arguments.out, limits = check_file("--out", arguments.out), limits_of(arguments, at_once=True)
    paths = files(arguments.paths, failed, ocr=arguments.ocr)
    folder = check_model(arguments.model)
    reader = load(folder, task="encode", overflow="window", adapter=arguments.adapter)
    read = {str(path): text_of(path, failed, limits, ocr=arguments.ocr) for path in paths}
    texts = {name: text for name, text in read.items() if text is not None}
    details = reader.encode_with_details(
        list(texts.values()),
        prompt_name=reader.document_prompt_name,
        progress=False if arguments.quiet else None,
    )
    vectors = [one.pop("sentence_embedding") for one in details]
    table = np.stack(vectors) if vectors else np.zeros((0, reader.model.config.width), np.float32)
    if vectors:
        _write(arguments.out, table)
    rows = [{"row": i, "file": name} | one for i, (name, one) in enumerate(zip(texts, details, strict=True))]
    if arguments.json:
        print(json.dumps({"out": str(arguments.out), "shape": table.shape, "rows": rows, "failed": failed}))
    elif not arguments.quiet:
        for row in rows:
            print(f"{row['row']}\t{row['n_tokens']} tokens\t{printable(str(row['file']))}")
    return report_failures(failed)


def _write(path: Path, table: "Matrix") -> None:
    """Write the vectors, to a file all or nothing, to a pipe or a device as it takes them."""
    import numpy as np

    data, target = BytesIO(), Path(os.path.realpath(path))  # a link stays one
    np.save(data, table)
    if path.exists() and not path.is_file():
        path.write_bytes(data.getvalue())
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data.getvalue())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
