"""Projects and accounts as they are named at the command line."""

from __future__ import annotations

from django.core.management.base import CommandError

from annotation.models import Project
from webapp.accounts.models import User

LONGEST_NUMBER = 18  # digits; databases keep no longer ones


def project_named(name: str) -> Project:
    """A project by its name, else by its number."""
    found = Project.objects.filter(name=name).first()
    if found is None and name.isascii() and name.isdigit() and len(name) <= LONGEST_NUMBER:
        found = Project.objects.filter(pk=int(name)).first()
    if found is None:
        raise CommandError(f"There is no project “{name}”.")
    return found


def user_named(name: str | None) -> User | None:
    """None where nobody is named: then it is the operator who acts."""
    if not name:
        return None
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is no user “{name}”.")
    return user
