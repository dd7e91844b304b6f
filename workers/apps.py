from django.apps import AppConfig


class WorkersConfig(AppConfig):
    name = "workers"

    def ready(self) -> None:
        # The Celery app must exist wherever a job is sent by name.
        from workers import app, tasks  # noqa: F401
