"""Pages that belong to no domain: health, the theme switch, the audit log."""

from __future__ import annotations

import logging

from django.contrib.auth.decorators import login_not_required
from django.core.paginator import Paginator
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.core import audit
from webapp.core.context import THEMES
from webapp.core.errors import Forbidden
from webapp.core.http import go_back
from webapp.core.models import Event

log = logging.getLogger("palate.audit")
AUDIT_ROLES = ("admin", "viewer")  # core knows no roles; these are their names
ACTIONS = {  # what every domain writes into the log; a name that is missing here is shown as it is
    "compose_round": gettext_lazy("composed a round"),
    "recompose_round": gettext_lazy("changed a draft round"),
    "round_draft": gettext_lazy("took a round back to draft"),
    "round_screening": gettext_lazy("started screening"),
    "round_open": gettext_lazy("sealed and opened a round"),
    "round_closed": gettext_lazy("closed a round"),
    "round_unsealed": gettext_lazy("unsealed a round"),
    "round_cancelled": gettext_lazy("cancelled a round"),
    "start_answering": gettext_lazy("had the answers of a round made"),
    "stop_answering": gettext_lazy("stopped the making of answers"),
    "resume_answering": gettext_lazy("went on with the making of answers"),
    "answering_done": gettext_lazy("the answers of a round were made"),
    "add_contestant": gettext_lazy("added a contestant"),
    "change_contestant": gettext_lazy("changed a contestant"),
    "try_contestant": gettext_lazy("tried a contestant out"),
    "close_reason": gettext_lazy("gave the reason for closing"),
    "approve_unsealing": gettext_lazy("agreed to unseal"),
    "create_persona": gettext_lazy("added a persona"),
    "add_persona_version": gettext_lazy("added a version of a persona"),
    "record_consent": gettext_lazy("noted a consent"),
    "withdraw_consent": gettext_lazy("withdrew a consent"),
    "read_answers": gettext_lazy("read answers with their maker"),
    "upload": gettext_lazy("uploaded a file"),
    "recheck": gettext_lazy("had a file checked again"),
    "import": gettext_lazy("started an import"),
    "import_done": gettext_lazy("finished an import"),
    "cancel_import": gettext_lazy("cancelled an import"),
    "resume_import": gettext_lazy("resumed an import"),
    "invite": gettext_lazy("invited somebody"),
    "withdraw_invitation": gettext_lazy("withdrew an invitation"),
    "accept_invitation": gettext_lazy("accepted an invitation"),
    "switch_account_on": gettext_lazy("switched an account on"),
    "switch_account_off": gettext_lazy("switched an account off"),
    "create_token": gettext_lazy("made a token"),
    "revoke_token": gettext_lazy("revoked a token"),
    "create_project": gettext_lazy("made an annotation project"),
    "change_project": gettext_lazy("changed the settings of a project"),
    "move_project": gettext_lazy("moved a project"),
    "publish_guidelines": gettext_lazy("published guidelines"),
    "add_member": gettext_lazy("added somebody to a project"),
    "member_state": gettext_lazy("changed the state of a member"),
    "member_paused": gettext_lazy("a member was paused by the gold gate"),
    "set_labels_aside": gettext_lazy("set a member's labels aside"),
    "take_labels_back": gettext_lazy("took a member's labels back in"),
    "set_adjudicator": gettext_lazy("changed who decides disputed items"),
    "add_catalog_pairs": gettext_lazy("added pairs from the catalog"),
    "release_items": gettext_lazy("gave out items"),
    "drop_items": gettext_lazy("dropped items"),
    "hold_items": gettext_lazy("held items back"),
    "make_gold": gettext_lazy("made an item gold or corrected it"),
    "retire_gold": gettext_lazy("retired a gold item"),
    "create_gate": gettext_lazy("made a gate"),
    "start_gate": gettext_lazy("sent a model through a gate"),
    "gate_along": gettext_lazy("sent base, middle and end of a run through a gate"),
    "measure_gate_again": gettext_lazy("had a gate measured again"),
    "gate_decided": gettext_lazy("a gate gave its verdict"),
    "add_edge_case": gettext_lazy("kept an edge case"),
    "retire_edge_case": gettext_lazy("retired an edge case"),
    "mark_success": gettext_lazy("read a success of a gate"),
    "ask_override": gettext_lazy("asked for an override"),
    "answer_override": gettext_lazy("answered a request for an override"),
    "promote": gettext_lazy("made a contestant of a model"),
    "create_chain": gettext_lazy("made a chain"),
    "change_chain": gettext_lazy("changed a chain"),
    "switch_arrows": gettext_lazy("switched arrows of a chain"),
    "start_chain": gettext_lazy("a chain began"),
    "let_chain_go_on": gettext_lazy("let a chain go on"),
    "retry_chain": gettext_lazy("had a stage of a chain tried again"),
    "cancel_chain": gettext_lazy("cancelled a chain"),
    "chain_stage_ended": gettext_lazy("a stage of a chain ended"),
    "chain_ended": gettext_lazy("a chain ended"),
    "create_webhook": gettext_lazy("added a webhook"),
    "change_webhook": gettext_lazy("changed a webhook"),
    "pause_webhook": gettext_lazy("paused a webhook"),
    "resume_webhook": gettext_lazy("switched a webhook on"),
    "delete_webhook": gettext_lazy("deleted a webhook"),
    "show_webhook_secret": gettext_lazy("looked at the secret of a webhook"),
    "rotate_webhook_secret": gettext_lazy("replaced the secret of a webhook"),
    "webhook_switched_off": gettext_lazy("a webhook was switched off: nothing arrived"),
    "read_guidelines": gettext_lazy("confirmed having read the guidelines"),
    "report_problem": gettext_lazy("reported a problem with an item"),
    "raise_appeal": gettext_lazy("contested an item"),
    "start_export": gettext_lazy("started an export"),
    "export_done": gettext_lazy("an export ended"),
    "cancel_export": gettext_lazy("cancelled an export"),
    "start_counterfactuals": gettext_lazy("started rewriting"),
    "counterfactuals_done": gettext_lazy("rewriting ended"),
    "cancel_counterfactuals": gettext_lazy("cancelled rewriting"),
    "review_rewrite": gettext_lazy("reviewed a counterfactual pair"),
    "claim_item": gettext_lazy("took a disputed item in hand"),
    "decide_blind": gettext_lazy("decided a disputed item blind"),
    "adjudicate_item": gettext_lazy("decided a disputed item"),
    "give_back_item": gettext_lazy("gave a disputed item back"),
    "contest_item": gettext_lazy("gave an item to the adjudicators"),
    "answer_appeal": gettext_lazy("answered an appeal"),
    "resolve_problems": gettext_lazy("resolved reported problems"),
    "create_dataset": gettext_lazy("saved a draft of a dataset"),
    "freeze_dataset": gettext_lazy("sent a dataset to be frozen"),
    "dataset_frozen": gettext_lazy("a dataset was frozen"),
    "discard_dataset": gettext_lazy("put a draft of a dataset away"),
    "launch_run": gettext_lazy("launched a training run"),
    "cancel_run": gettext_lazy("cancelled a training run"),
    "resume_run": gettext_lazy("resumed a training run"),
    "annotate_run": gettext_lazy("changed the note of a training run"),
    "pin_run": gettext_lazy("pinned a training run"),
    "unpin_run": gettext_lazy("unpinned a training run"),
    "run_started": gettext_lazy("a training run started"),
    "run_ended": gettext_lazy("a training run ended"),
    "remove_checkpoint": gettext_lazy("removed the files of a checkpoint"),
    "download_run_file": gettext_lazy("downloaded a file of a training run"),
    "download_dataset": gettext_lazy("downloaded a part of a dataset"),
    "record_baseline": gettext_lazy("noted the evaluation of a base model"),
}


@login_not_required
@never_cache
@require_GET
def health(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and is migrated, else 503 with what is wrong."""
    try:
        executor = MigrationExecutor(connection)
        pending = bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    except DatabaseError:
        return JsonResponse({"status": "database does not answer"}, status=503)
    if pending:
        return JsonResponse({"status": "migrations are pending"}, status=503)
    return JsonResponse({"status": "ok"})


@login_not_required
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark or the system's choice in a cookie."""
    response = go_back(request, "/")
    choice = request.POST.get("theme", "")
    if choice in THEMES:
        response.set_cookie("theme", choice, max_age=365 * 86400, samesite="Lax", httponly=True)
    else:
        response.delete_cookie("theme")
    return response


@never_cache
@require_GET
def audit_log(request: HttpRequest) -> HttpResponse:
    """The hash-chained audit log, newest first; `?check=1` verifies the whole chain."""
    if getattr(request.user, "role", "") not in AUDIT_ROLES:
        raise Forbidden(_("Only for administrators and viewers."), code="role")
    checked, broken = None, ""
    if request.GET.get("check"):
        try:
            checked = audit.verify_chain()
        except ValueError as error:
            log.error("audit chain: %s", error)
            broken = _("The chain is broken: a line was changed, or lines are gone. See the log.")
    rows = Event.objects.select_related("actor").order_by("-n")
    page = Paginator(rows, 100).get_page(request.GET.get("page", "1"))
    lines = [
        {
            "event": event,
            "action": ACTIONS.get(event.action, event.action),
            "details": {key: value for key, value in event.details.items() if value != ""},
        }
        for event in page
    ]
    context = {"page": page, "lines": lines, "checked": checked, "broken": broken}
    return render(request, "core/audit.html", context)
