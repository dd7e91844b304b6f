"""Words for chains: where one stands, for whom it waits, what it cost."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from training.enums import ChainStage, ChainState
from training.models import Chain, ChainRun
from training.selectors.chains import Cost

BADGES = {
    "pending": "", "running": "info", "waiting": "warn", "succeeded": "ok", "done": "ok",
    "failed": "err", "cancelled": "",
}  # fmt: skip


def standing(run: ChainRun) -> str:
    """Where this run stands and who must act, in one sentence."""
    stage = ChainStage(run.stage).label if run.stage else ""
    said: dict[str, Any] = {
        "audit": _("It waits until an administrator has read the successes of the gate. That is "
                   "needed whatever the arrow says."),
        "ask": _("It waits for an administrator who lets it go on to: %(stage)s."),
        "off": _("It ended before: %(stage)s. That arrow was off."),
        "complete": _("All stages are done."),
        "same": _("It ended before training: what was frozen is the same as the time before. Begun "
                  "by hand, it trains all the same."),
        "step": _("It stopped: %(stage)s failed."),
        "actor": _("It stopped: “%(name)s”, in whose name it works, is no administrator any more. "
                   "Another one can have it tried again."),
    }  # fmt: skip
    if run.state == ChainState.CANCELLED:
        return _("It was cancelled.")
    if run.reason in said:
        return str(said[run.reason] % {"stage": stage, "name": run.by.get_username()})
    if run.stage:
        return _("It works on: %(stage)s.") % {"stage": stage}
    return _("It is about to begin.")


def cost_words(cost: Cost) -> str:
    """Seconds on a device and of processors, tokens where they are known."""
    if not cost.device and not cost.cpu:
        return ""
    said = [
        _("%(seconds)s s on a device") % {"seconds": round(cost.device)},
        _("%(seconds)s s of processors") % {"seconds": round(cost.cpu)},
    ]
    if cost.tokens is not None:
        said.append(ngettext("%(n)s token", "%(n)s tokens", cost.tokens) % {"n": cost.tokens})
    return " · ".join(said)


def schedule_words(chain: Chain) -> str:
    if chain.hour is None:
        return _("only by hand")
    return _("every night at %(hour)s:00") % {"hour": f"{chain.hour:02d}"}
