"""The door of a view: which roles may pass. Logged out → login; wrong role → 403."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse

from webapp.accounts.enums import Role
from webapp.accounts.policies import check_role

View = Callable[..., HttpResponse]


def roles(*allowed: Role) -> Callable[[View], View]:
    """Let only these roles into the view. The decorated view carries `allowed_roles` for tests."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            check_role(request.user, *allowed)
            return view(request, *args, **kwargs)

        guarded.allowed_roles = allowed  # type: ignore[attr-defined]
        return guarded

    return decorate


admin_only = roles(Role.ADMIN)
