from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"

    def ready(self) -> None:
        from annotation.refusals import FILES, ROWS
        from annotation.services.counterfactuals import erase_rewrites_of
        from annotation.services.erasing import erase_persona
        from annotation.services.exports import forget_exports_of
        from annotation.services.imports import PairsImporter
        from webapp.catalog.erasure import also_erase
        from webapp.catalog.refusals import also_explain
        from webapp.catalog.services.importers import register

        also_erase(erase_persona)
        also_erase(erase_rewrites_of)
        also_erase(forget_exports_of)
        also_explain(ROWS, FILES)
        register(PairsImporter())
