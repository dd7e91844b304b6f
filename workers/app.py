"""The Celery application. Tasks live in `workers.tasks` and carry ids only."""

from __future__ import annotations

import os

from celery import Celery

import workers.broker  # noqa: F401 - its name must be known before the first message

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("palate")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["workers"])
