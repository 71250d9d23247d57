"""What a run writes down while it goes: a line of JSON for each record, and TensorBoard's files if wanted."""

import json
from pathlib import Path
from typing import Any, TextIO

from longspan.errors import LongspanError
from longspan.formats.atomic import write_text

NAME = "log.jsonl"
Record = dict[str, Any]


def read_log(folder: Path) -> list[Record]:
    """All records of a run; a line that a kill left half written is none."""
    records = []
    path = folder / NAME
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and isinstance(record.get("step"), int):
            records.append(record)
    return records


class RunLog:
    """The log of a run that goes on at a step: what was written of later ones is written anew."""

    def __init__(self, folder: Path, step: int, *, tensorboard: bool = False) -> None:
        kept = [record for record in read_log(folder) if record["step"] <= step]
        write_text(folder / NAME, "".join(f"{json.dumps(record)}\n" for record in kept))
        self._board = _board(folder / "tensorboard", step) if tensorboard else None
        self._file: TextIO = (folder / NAME).open("a", encoding="utf-8")

    def write(self, record: Record) -> None:
        """Add a record; numbers of it are curves of TensorBoard."""
        self._file.write(f"{json.dumps(record)}\n")
        self._file.flush()
        if self._board is not None:
            for name, value in record.items():
                if isinstance(value, float):
                    self._board.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def _board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise LongspanError("TensorBoard is not installed: pip install longspan[tensorboard].") from error
    return SummaryWriter(folder, purge_step=step + 1)
