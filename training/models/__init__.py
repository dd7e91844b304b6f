"""The tables of training, by noun."""

from training.models.baselines import BaselineEvaluation
from training.models.chains import Chain, ChainLink, ChainRun, ChainStep
from training.models.curves import Alert, Checkpoint, MetricLine, RunEvent, SampleLine
from training.models.datasets import Dataset, DatasetItem, RowText, SplitClaim
from training.models.gates import (
    AuditMark,
    EdgeCase,
    GateRun,
    GateSpec,
    OverrideRequest,
    Promotion,
)
from training.models.records import Record
from training.models.runs import Device, RunInput, TrainingRun

__all__ = [
    "Alert",
    "AuditMark",
    "BaselineEvaluation",
    "Chain",
    "ChainLink",
    "ChainRun",
    "ChainStep",
    "Checkpoint",
    "Dataset",
    "DatasetItem",
    "Device",
    "EdgeCase",
    "GateRun",
    "GateSpec",
    "MetricLine",
    "OverrideRequest",
    "Promotion",
    "Record",
    "RowText",
    "RunEvent",
    "RunInput",
    "SampleLine",
    "SplitClaim",
    "TrainingRun",
]
