"""The admin site: accounts can be looked at and switched off or on, and nothing else.

Accounts come from invitations, roles with them, passwords from their owners: whoever could make an
administrator here could agree to unseal twice. Nothing of a round is registered, so nothing can
leak (V1), and what other packages registered is taken out.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from webapp.accounts.models import User
from webapp.accounts.services import switch_account

for _model in list(admin.site._registry):
    admin.site.unregister(_model)


@admin.register(User)
class AccountAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("username", "role", "is_active", "last_login")
    list_filter = ("role", "is_active")
    search_fields = ("username",)
    fields = ("username", "role", "is_active", "is_staff", "is_superuser", "last_login")
    readonly_fields = ("username", "role", "is_staff", "is_superuser", "last_login")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        switch_account(actor=request.user, user=obj, active=obj.is_active)
