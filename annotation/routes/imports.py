"""Addresses of annotation: imports."""

from django.urls import URLPattern, path

from annotation.views import imports as views

urlpatterns: list[URLPattern] = [
    path("<int:pk>/import/", views.upload, name="import"),
    path("<int:pk>/import/<int:run>/", views.import_run, name="import_run"),
    path("<int:pk>/import/<int:run>/progress/", views.import_progress, name="import_progress"),
    path("<int:pk>/import/<int:run>/check/", views.check_again, name="import_check"),
    path("<int:pk>/import/<int:run>/start/", views.start, name="import_start"),
    path("<int:pk>/import/<int:run>/cancel/", views.cancel, name="import_cancel"),
    path("<int:pk>/import/<int:run>/resume/", views.resume, name="import_resume"),
    path("<int:pk>/import/<int:run>/errors/", views.errors, name="import_errors"),
]
