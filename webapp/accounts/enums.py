"""Roles. A user has one; what each may do stands in the policies of the domains."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    ANNOTATOR = "annotator", _("annotator")  # labels preference pairs; may vote in rounds
    RATER = "rater", _("seed user")  # votes in blind rounds
    ADMIN = "admin", _("administrator")  # composes rounds, imports, launches training
    VIEWER = "viewer", _("viewer")  # reads the leaderboard


VOTING_ROLES = (Role.RATER, Role.ANNOTATOR)
