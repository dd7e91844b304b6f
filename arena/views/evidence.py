"""What proves a round: its commitment, its bundle, the script that checks it, and receipts."""

from __future__ import annotations

import hashlib
import json
import re

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from arena import exports
from arena.enums import RoundState
from arena.models import Round, Vote
from arena.protocol import rating_spec
from arena.selectors import leaderboard as select
from arena.selectors.sealed import find_receipt
from arena.views.leaderboard import download, lasting, readers

RECEIPT = re.compile(r"[0-9a-f]{16,64}")


@readers
@require_safe
def verify(request: HttpRequest, pk: int) -> HttpResponse:
    """The record of a sealed round: what was fixed, who agreed to unseal, how to check it all."""
    round_ = select.access_record(request.user, pk)
    unsealed = round_.state == RoundState.UNSEALED
    approvals = round_.approvals.select_related("user").order_by("at", "pk")
    code = request.GET.get("receipt", "")
    context = {
        "round": round_,
        "unsealed": unsealed,
        "protocol": _pretty(round_),
        "protocol_sha256": hashlib.sha256(round_.protocol.encode()).hexdigest(),
        "approvals": list(approvals),
        "code": code,
        "answer": _receipt_answer(round_, code) if code and unsealed else None,
        "bundle_name": exports.file_name(round_, "bundle.zip"),
        "votes_name": exports.file_name(round_, "votes.jsonl"),
        "rating": rating_spec(round_),
    }
    response = render(request, "arena/verify.html", context)
    patch_cache_control(response, private=True, max_age=0, must_revalidate=True)
    return response


def _pretty(round_: Round) -> str:
    if not round_.protocol:
        return ""
    return json.dumps(json.loads(round_.protocol), ensure_ascii=False, indent=2, sort_keys=True)


def _receipt_answer(round_: Round, code: str) -> dict[str, str]:
    """Whether a pasted receipt is in the bundle, in a sentence and with a state for its colour."""
    code = "".join(code.split()).lower()
    if not RECEIPT.fullmatch(code):
        text = _("A receipt has 64 characters, digits and the letters a to f; give at least 16.")
        return {"state": "err", "text": text}
    vote = find_receipt(round_, code)
    if vote is None:
        return {"state": "err", "text": _("This receipt is not in the bundle of this round.")}
    return {"state": "ok", "text": _receipt_sentence(vote)}


def _receipt_sentence(vote: Vote) -> str:
    """No more than the bundle says: the battle is named to nobody here."""
    if vote.is_undo:
        return _("This receipt is in the bundle: it takes an earlier vote back.")
    if vote.assignment.head_id != vote.pk:
        return _("This receipt is in the bundle; a later revision replaced the vote.")
    if vote.owner:
        return _("This receipt is in the bundle, among the owners' votes that count in aggregate.")
    return _("This receipt is in the bundle, and its vote counts.")


@readers
@require_safe
def bundle(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The bundle of an unsealed round. Refused for any other, whoever asks."""
    round_ = download(request, pk)
    return lasting(
        FileResponse(
            exports.bundle_file(round_),
            as_attachment=True,
            filename=exports.file_name(round_, "bundle.zip"),
            content_type="application/zip",
        )
    )


@readers
@require_safe
def votes_file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The standing votes of the bundle, as `manage.py rate` reads them."""
    round_ = download(request, pk)
    return lasting(
        FileResponse(
            exports.votes_file(round_),
            as_attachment=True,
            filename=exports.file_name(round_, "votes.jsonl"),
            content_type="application/x-ndjson; charset=utf-8",
        )
    )


@readers
@require_safe
def verify_script(request: HttpRequest) -> HttpResponseBase:
    """The stand-alone script, as text."""
    response = HttpResponse(exports.verify_script(), content_type="text/x-python; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="verify_bundle.py"'
    return lasting(response)
