"""The admin site: users only. Nothing of a round is registered there, so nothing can leak (V1)."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from webapp.accounts.models import User


@admin.register(User)
class PalateUserAdmin(UserAdmin):  # type: ignore[type-arg]
    list_display = ("username", "role", "is_active", "last_login")
    list_filter = ("role", "is_active")
    fieldsets = (
        (None, {"fields": ("username", "password", "role")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser")}),
    )
