"""What a run writes down while it goes: a line of JSON for each record, and TensorBoard's files if wanted."""

import json
from pathlib import Path
from typing import Any

from longspan.errors import LongspanError
from longspan.formats.atomic import telling_full, write_text

NAME, EVALUATION = "log.jsonl", "eval/"
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
    """The log of a run that goes on: what was written of later steps and evaluations is written anew."""

    def __init__(self, folder: Path, step: int, evaluated: int, *, tensorboard: bool = False) -> None:
        self._folder, self._tensorboard = folder, tensorboard
        self._open(step, evaluated)

    def _open(self, step: int, evaluated: int) -> None:
        path, last = self._folder / NAME, {True: evaluated, False: step}
        kept = [one for one in read_log(self._folder) if one["step"] <= last[_is_evaluation(one)]]
        write_text(path, "".join(f"{json.dumps(record)}\n" for record in kept))
        self._board = _board(self._folder / "tensorboard", step) if self._tensorboard else None
        self._file = path.open("ab", buffering=0)  # so that a full disk leaves nothing to be written later

    def rewind(self, step: int, evaluated: int) -> None:
        """Go back to a step, and to the evaluation before it."""
        self.close()
        self._open(step, evaluated)

    def write(self, record: Record) -> None:
        """Add a record; numbers of it are curves of TensorBoard."""
        with telling_full(self._folder / NAME):
            self._file.write(f"{json.dumps(record)}\n".encode())
        if self._board is not None:
            for name, value in record.items():
                if isinstance(value, float):
                    self._board.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def _is_evaluation(record: Record) -> bool:
    return any(name.startswith(EVALUATION) for name in record)


def _board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise LongspanError("TensorBoard is not installed: pip install longspan[tensorboard].") from error
    return SummaryWriter(folder, purge_step=step + 1)
