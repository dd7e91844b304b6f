"""Addresses of annotation: progress, agreement, annotators."""

from django.urls import path

from annotation.views import statistics

urlpatterns = [
    path("<int:pk>/", statistics.project, name="project"),
    path("<int:pk>/progress/", statistics.progress, name="progress"),
    path("<int:pk>/refresh/", statistics.refresh, name="refresh_statistics"),
    path("<int:pk>/agreement/", statistics.agreement, name="agreement"),
    path("<int:pk>/annotators/", statistics.annotators, name="annotators"),
]
