"""Parsers of imported records, pure: from a byte stream to rows and refusals."""

from __future__ import annotations

from training.records import counterexamples, instructions, traces
from training.records.rows import Parsed, RecordRow

__all__ = ["FORMATS", "Parsed", "RecordRow"]
FORMATS = {
    "instructions": instructions.parse,
    "tool_traces": traces.parse,
    "counterexamples": counterexamples.parse,
}
