"""Addresses of annotation, under /annotation/."""

from annotation.routes import (
    counterfactuals,
    exports,
    imports,
    manage,
    review,
    statistics,
    webhooks,
    work,
)

app_name = "annotation"
urlpatterns = [
    *work.urlpatterns,
    *manage.urlpatterns,
    *statistics.urlpatterns,
    *review.urlpatterns,
    *imports.urlpatterns,
    *exports.urlpatterns,
    *counterfactuals.urlpatterns,
    *webhooks.urlpatterns,
]
