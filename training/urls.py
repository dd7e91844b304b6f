from django.urls import path

from training.views import datasets, records

app_name = "training"
urlpatterns = [
    path("datasets/", datasets.dataset_list, name="datasets"),
    path("datasets/new/", datasets.create, name="dataset_new"),
    path("datasets/<int:pk>/", datasets.dataset, name="dataset"),
    path("datasets/<int:pk>/progress/", datasets.dataset_progress, name="dataset_progress"),
    path("datasets/<int:pk>/freeze/", datasets.freeze, name="dataset_freeze"),
    path("datasets/<int:pk>/discard/", datasets.discard, name="dataset_discard"),
    path("datasets/<int:pk>/manifest.json", datasets.manifest, name="dataset_manifest"),
    path("datasets/<int:pk>/<slug:split>.jsonl", datasets.download, name="dataset_download"),
    path("records/", records.records, name="records"),
    path("records/<int:pk>/", records.record_import, name="record_import"),
    path("records/<int:pk>/progress/", records.progress, name="record_progress"),
    path("records/<int:pk>/start/", records.start, name="record_start"),
    path("records/<int:pk>/cancel/", records.cancel, name="record_cancel"),
    path("records/<int:pk>/resume/", records.resume, name="record_resume"),
    path("records/<int:pk>/errors/", records.errors, name="record_errors"),
]
