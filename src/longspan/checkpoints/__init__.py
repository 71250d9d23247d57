"""Reading and writing checkpoints: data only, never code; every file is checked before torch sees it."""

from longspan.checkpoints.load import LoadedModel, load_model
from longspan.checkpoints.save import save_model

__all__ = ["LoadedModel", "load_model", "save_model"]
