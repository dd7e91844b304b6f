"""Import formats: pure parsers from a byte stream to rows and refusals, and telling them apart."""

from __future__ import annotations

import codecs
import json
import re

from webapp.catalog.formats import alpaca_eval, oasst_sampling, palate
from webapp.catalog.formats.rows import FormatError, Parser

FORMATS: dict[str, Parser] = {
    "palate": palate.parse,
    "alpaca_eval": alpaca_eval.parse,
    "oasst_sampling": oasst_sampling.parse,
}
HEAD = 256 * 1024
_KEY = re.compile(r'"(\w{1,40})"\s*:')


def detect(head: bytes) -> str:
    """The format that the beginning of a file looks like, "" where it cannot be told."""
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").lstrip()
    if text.startswith("["):
        keys = set(_KEY.findall(text[:20_000]))
        return "alpaca_eval" if {"instruction", "output"} <= keys else ""
    first = text.partition("\n")[0]
    try:
        found = json.loads(first)
        keys = set(found) if isinstance(found, dict) else set()
    except (ValueError, RecursionError):
        keys = set(_KEY.findall(text))
    if "prompts" in keys and "contestant" not in keys:
        return "oasst_sampling"
    return "palate" if {"contestant", "answer"} & keys else ""


def choose(head: bytes, wanted: str) -> str:
    """The format to read with. Raises FormatError where the file is plainly something else."""
    if not head.strip():
        raise FormatError("empty")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FormatError("utf16")
    found = detect(head)
    if not wanted:
        if not found:
            raise FormatError("unknown", formats=", ".join(FORMATS))
        return found
    if wanted not in FORMATS:
        raise FormatError("no_format", name=wanted, formats=", ".join(FORMATS))
    if found and found != wanted:
        raise FormatError("wrong", wanted=wanted, found=found)
    is_list = head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    if is_list != (wanted == "alpaca_eval"):
        raise FormatError("not_list" if wanted == "alpaca_eval" else "a_list", wanted=wanted)
    return wanted
