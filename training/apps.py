from django.apps import AppConfig


class TrainingConfig(AppConfig):
    name = "training"

    def ready(self) -> None:
        from training.refusals import RECORDS
        from training.services.erasing import erase_persona
        from training.services.records import RecordsImporter
        from webapp.catalog.erasure import also_erase
        from webapp.catalog.refusals import also_explain
        from webapp.catalog.services.importers import register

        also_erase(erase_persona)
        also_explain(RECORDS)
        register(RecordsImporter())
