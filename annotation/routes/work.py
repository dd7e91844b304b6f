"""Addresses of annotation: work."""

from django.urls import URLPattern, path

from annotation.views import labelling, reports, work

urlpatterns: list[URLPattern] = [
    path("work/", work.work, name="work"),
    path("<int:pk>/guidelines/", work.guidelines, name="guidelines"),
    path("<int:pk>/label/", labelling.label, name="label"),
    path("<int:pk>/label/undo/", labelling.undo, name="undo"),
    path("<int:pk>/label/skip/", labelling.skip, name="skip"),
    path("<int:pk>/label/heartbeat/", labelling.heartbeat, name="heartbeat"),
    path("<int:pk>/label/prefetch/", labelling.prefetch, name="prefetch"),
    path("<int:pk>/label/draft/", labelling.draft, name="draft"),
    path("<int:pk>/label/difference/", labelling.difference, name="diff"),
    path("<int:pk>/label/feedback/", labelling.feedback, name="feedback"),
    path("<int:pk>/label/problem/", reports.problem, name="problem"),
    path("<int:pk>/label/rest/", reports.rest, name="rest"),
    path("<int:pk>/mine/", work.history, name="history"),
    path("<int:pk>/mine/item/", work.submission, name="submission"),
    path("<int:pk>/mine/contest/", reports.contest, name="contest"),
]
