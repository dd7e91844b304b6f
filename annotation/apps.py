from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"

    def ready(self) -> None:
        from annotation.services.erasing import erase_persona
        from annotation.services.exports import forget_exports_of
        from webapp.catalog.erasure import also_erase

        also_erase(erase_persona)
        also_erase(forget_exports_of)
