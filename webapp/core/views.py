"""Pages that belong to no domain: health and the theme switch."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from webapp.core.context import THEMES
from webapp.core.http import go_back


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
