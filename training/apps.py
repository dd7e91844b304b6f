from django.apps import AppConfig


class TrainingConfig(AppConfig):
    name = "training"

    def ready(self) -> None:
        from training.services.erasing import erase_persona
        from webapp.catalog.erasure import also_erase

        also_erase(erase_persona)
