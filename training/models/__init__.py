"""The tables of training, by noun."""

from training.models.baselines import BaselineEvaluation
from training.models.curves import Alert, Checkpoint, MetricLine, RunEvent, SampleLine
from training.models.datasets import Dataset, DatasetItem, RowText, SplitClaim
from training.models.records import Record
from training.models.runs import Device, RunInput, TrainingRun

__all__ = [
    "Alert",
    "BaselineEvaluation",
    "Checkpoint",
    "Dataset",
    "DatasetItem",
    "Device",
    "MetricLine",
    "Record",
    "RowText",
    "RunEvent",
    "RunInput",
    "SampleLine",
    "SplitClaim",
    "TrainingRun",
]
