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
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.core import audit
from webapp.core.context import THEMES
from webapp.core.errors import Forbidden
from webapp.core.http import go_back
from webapp.core.models import Event

log = logging.getLogger("palate.audit")
AUDIT_ROLES = ("admin", "viewer")  # core knows no roles; these are their names


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
    context = {"page": page, "checked": checked, "broken": broken}
    return render(request, "core/audit.html", context)
