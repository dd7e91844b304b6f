"""Addresses of annotation: exports."""

from django.urls import URLPattern, path

from annotation.views import exports as views

urlpatterns: list[URLPattern] = [
    path("<int:pk>/exports/", views.exports, name="exports"),
    path("<int:pk>/exports/<int:run>/", views.export, name="export"),
    path("<int:pk>/exports/<int:run>/progress/", views.export_progress, name="export_progress"),
    path("<int:pk>/exports/<int:run>/cancel/", views.export_cancel, name="export_cancel"),
    path("<int:pk>/exports/<int:run>/file/", views.export_download, name="export_download"),
]
