from django.urls import path

from training.views import datasets, records, run_launch, run_lists, runs

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
    path("runs/", run_lists.run_list, name="runs"),
    path("runs/new/", run_launch.create, name="run_new"),
    path("runs/compare/", run_lists.compare, name="run_compare"),
    path("runs/storage/", run_lists.storage, name="run_storage"),
    path("runs/rules/", run_lists.rules, name="run_rules"),
    path("runs/<int:pk>/", runs.run, name="run"),
    path("runs/<int:pk>/live/", runs.live, name="run_live"),
    path("runs/<int:pk>/samples/", runs.samples, name="run_samples"),
    path("runs/<int:pk>/values/", runs.values, name="run_values"),
    path("runs/<int:pk>/cancel/", runs.cancel, name="run_cancel"),
    path("runs/<int:pk>/resume/", runs.resume, name="run_resume"),
    path("runs/<int:pk>/clone/", runs.clone, name="run_clone"),
    path("runs/<int:pk>/note/", runs.note, name="run_note"),
    path("runs/<int:pk>/pin/", runs.pin, name="run_pin"),
    path("runs/<int:pk>/files/<str:name>", runs.file, name="run_file"),
]
