"""Trained language models of bytes, from their folders."""

from pathlib import Path

from longspan.checkpoints.load import load_model
from longspan.errors import bad
from longspan.families.char_lm.model import CharLM
from longspan.families.task_model import TaskModel


def load_char_lm(folder: str | Path) -> TaskModel:
    """The model that `train_char_lm` saved in a folder."""
    place = Path(folder).expanduser()
    if not (place / "config.json").is_file():
        repair = "`longspan train char-lm` makes one, and saves it at the end of each phase."
        raise bad("model", "the folder of a language model of bytes", str(folder), repair)
    model = load_model(place).model
    if not isinstance(model.backbone, CharLM):
        raise bad("model", "a language model of bytes", model.config.family)
    return model
