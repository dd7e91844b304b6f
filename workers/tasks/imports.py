"""Tasks of the catalog's imports: each calls one service and may run twice without harm."""

from celery import shared_task

from webapp.catalog.services import imports


@shared_task(name="workers.run_import", time_limit=3600, soft_time_limit=3500)
def run_import(pk: int) -> None:
    imports.run_import(pk=pk)


@shared_task(name="workers.repair_imports", time_limit=300)
def repair_imports() -> None:
    """Send interrupted imports again and drop uploads that nobody started."""
    imports.repair_imports()
