"""What a contestant whose answers are made here must be told: checked, in the form that is kept.

Each refusal names the field of the form: url, model, key, timeout, at_once, place, system_prompt,
sampling or one of the sampling settings.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from training.engine.weights import NoModel, model_folder, weights_digest
from webapp.catalog.answering.messages import PLACE
from webapp.catalog.enums import ContestantKind
from webapp.catalog.services.checks import check_text
from webapp.core.chat import checked_endpoint
from webapp.core.errors import InvalidInput

TIMEOUT_RANGE, AT_ONCE_RANGE = (1, 600), (1, 64)
TEMPLATE_LIMIT = 20_000
PACKAGE = re.compile(r"package:(llm[-_][A-Za-z0-9_-]{1,60})")
# Name → least and greatest value. Whole numbers where both are whole.
SAMPLING: dict[str, tuple[float, float]] = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "max_tokens": (1, 32_768),
    "seed": (0, 2**31 - 1),
}
CHECKPOINT_SAMPLING = {**SAMPLING, "top_k": (1, 100_000), "repetition_penalty": (0.5, 2.0)}
OURS = ("model", "messages", "stream", "n", "tools", "tool_choice", "functions", "response_format")
MORE_LIMIT = 2000  # characters of further settings


def endpoint_settings(
    *, url: str, model: str, key: str = "", timeout: int = 120, at_once: int = 4
) -> dict[str, Any]:
    """As kept in Contestant.endpoint. The key's name alone is kept."""
    if "?" in url or "#" in url:
        raise InvalidInput(_("The address must not hold “?” or “#”."), field="url")
    endpoint = checked_endpoint(url, model, key)
    return {
        "url": endpoint.url,
        "model": check_text(endpoint.model, "model"),
        "key": endpoint.key,
        "timeout": _between(timeout, "timeout", *TIMEOUT_RANGE),
        "at_once": _between(at_once, "at_once", *AT_ONCE_RANGE),
    }


def checkpoint_settings(*, place: str, trained: bool = False, at_once: int = 8) -> dict[str, Any]:
    """As kept in Contestant.endpoint: where the model is, and the hash of its weights.

    A base model lies under PALATE_MODELS or comes in a package; a trained one under PALATE_RUNS.
    """
    at_once = _between(at_once, "at_once", *AT_ONCE_RANGE)
    place = check_text(place.strip(), "place", limit=500)
    if place.startswith("package:"):
        return {"place": _package(place), "at_once": at_once}
    root = Path(settings.PALATE_RUNS if trained else settings.PALATE_MODELS).resolve()
    folder = (root / place).resolve()
    if not folder.is_relative_to(root) or folder == root:
        raise InvalidInput(_("The folder must lie in %(root)s.") % {"root": root}, field="place")
    try:
        weights = weights_digest(model_folder(folder))
    except NoModel:
        raise InvalidInput(
            _("There is no model in this folder: config.json and *.safetensors are wanted."),
            field="place",
        ) from None
    return {"place": str(folder), "weights": weights, "at_once": at_once}


def _package(place: str) -> str:
    found = PACKAGE.fullmatch(place)
    if not found or importlib.util.find_spec(found[1].replace("-", "_")) is None:
        raise InvalidInput(
            _("There is no such package here. Packages with weights are named llm-…"),
            field="place",
        )
    return place


def sampling_settings(kind: str, values: Mapping[str, Any], more: str = "") -> dict[str, Any]:
    """Sampling settings without those left empty; `more` is a JSON object for the endpoint."""
    known = CHECKPOINT_SAMPLING if kind == ContestantKind.CHECKPOINT else SAMPLING
    found = _more(more) if kind == ContestantKind.ENDPOINT else {}
    for name, value in values.items():
        if value is None or value == "":
            continue
        if name not in known:
            raise InvalidInput(_("There is no such setting."), field="sampling")
        found[name] = _between(value, name, *known[name])
    return found


def _more(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    told = _('A JSON object, such as {"top_k": 40}; not: %(names)s.') % {"names": ", ".join(OURS)}
    try:
        found = json.loads(check_text(text, "sampling", limit=MORE_LIMIT))
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidInput(told, field="sampling") from None
    if not isinstance(found, dict) or set(found) & {*OURS, *SAMPLING}:
        raise InvalidInput(told, field="sampling")
    return found


def _between(value: Any, field: str, low: float, high: float) -> Any:
    whole = isinstance(low, int) and isinstance(high, int)
    fine = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not fine or not low <= value <= high:
        told = (
            _("A whole number from %(low)s to %(high)s.")
            if whole
            else _("A number from %(low)s to %(high)s.")
        )
        raise InvalidInput(told % {"low": low, "high": high}, field=field)
    return value


def check_template(template: str, uses_persona: bool) -> str:
    """The system prompt template. `{persona}` stands in it if and only if the summary is shown."""
    template = template.strip()
    if not template:
        return ""
    check_text(template, "system_prompt", limit=TEMPLATE_LIMIT)
    if uses_persona and PLACE not in template:
        raise InvalidInput(
            _("Say where the persona summary stands: write {persona} in the template."),
            field="system_prompt",
        )
    if not uses_persona and PLACE in template:
        raise InvalidInput(
            _("The template asks for {persona}, but the contestant does not see the summary."),
            field="system_prompt",
        )
    return template
