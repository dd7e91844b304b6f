"""The tables of training, by noun."""

from training.models.baselines import BaselineEvaluation
from training.models.datasets import Dataset, DatasetItem, RowText, SplitClaim
from training.models.records import Record

__all__ = [
    "BaselineEvaluation",
    "Dataset",
    "DatasetItem",
    "Record",
    "RowText",
    "SplitClaim",
]
