"""Labeled examples from files, checked: what `finetune` and evaluations take."""

from longspan.datasets.dataset import Dataset as Dataset
from longspan.datasets.read import read_dataset as read_dataset
from longspan.datasets.read import read_splits as read_splits
from longspan.datasets.split import split as split
