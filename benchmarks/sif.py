"""Count how much each word of BERT's uncased vocabulary counts: makes the table that Longspan ships.

    python benchmarks/sif.py --model DIR --out FILE FOLDER...

Every FOLDER is a collection of .txt and .rst files, or of QMSum's .json files, and weighs as much as another.
The shipped table: the .rst sources of python3.11-doc and of linux-doc-6.1, and QMSum's training meetings.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file

from longspan.evaluate.collections import qmsum
from longspan.families.stitched.sif import counted
from longspan.text.tokenizer import Tokenizer


def texts(folder: Path) -> Iterator[str]:
    """All texts of a collection."""
    if any(folder.glob("*.json")):
        yield from qmsum(folder).documents
    for path in sorted((*folder.rglob("*.txt"), *folder.rglob("*.rst"))):
        yield path.read_text(encoding="utf-8", errors="replace")


def main() -> None:
    """Count and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--model", required=True, help="a folder with the tokenizer")
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    tokenizer = Tokenizer.from_folder(arguments.model)
    weights = counted(tokenizer, [texts(folder) for folder in arguments.folders])
    save_file({"salience": weights.to(torch.float16)}, arguments.out)


if __name__ == "__main__":
    main()
