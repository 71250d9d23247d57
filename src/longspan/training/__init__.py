"""Training: one loop for every recipe, a data order that is a function, runs that lose nothing."""

from longspan.training.checkpoint import Saving as Saving
from longspan.training.config import TrainingConfig as TrainingConfig
from longspan.training.evaluation import Evaluation as Evaluation
from longspan.training.evaluation import mean_loss as mean_loss
from longspan.training.loop import train as train
from longspan.training.optimizer import Adafactor as Adafactor
from longspan.training.optimizer import AdamW as AdamW
from longspan.training.report import Report as Report
from longspan.training.schedule import Constant as Constant
from longspan.training.schedule import Cosine as Cosine
from longspan.training.schedule import Linear as Linear
from longspan.training.schedule import Polynomial as Polynomial
from longspan.training.source import Loss as Loss
from longspan.training.source import Source as Source

__all__ = [
    "Adafactor",
    "AdamW",
    "Constant",
    "Cosine",
    "Evaluation",
    "Linear",
    "Loss",
    "Polynomial",
    "Report",
    "Saving",
    "Source",
    "TrainingConfig",
    "mean_loss",
    "train",
]
