"""Addresses of annotation's API, under /api/v1/annotation/."""

from django.urls import path

from annotation.api import files, items, projects, work

app_name = "annotation-api"
urlpatterns = [
    path("work/", work.SeatListView.as_view(), name="seats"),
    path("work/<int:pk>/guidelines/", work.GuidelineView.as_view(), name="guidelines"),
    path("work/<int:pk>/next/", work.NextView.as_view(), name="next"),
    path("work/labels/", work.LabelView.as_view(), name="label"),
    path("work/undo/", work.TakeBackView.as_view(), name="undo"),
    path("work/skips/", work.SkipView.as_view(), name="skip"),
    path("work/heartbeats/", work.HeartbeatView.as_view(), name="heartbeat"),
    path("work/drafts/", work.DraftView.as_view(), name="draft"),
    path("projects/", projects.ProjectListView.as_view(), name="projects"),
    path("projects/<int:pk>/", projects.ProjectView.as_view(), name="project"),
    path("projects/<int:pk>/move/", projects.MoveView.as_view(), name="move"),
    path("projects/<int:pk>/members/", projects.MemberListView.as_view(), name="members"),
    path("projects/<int:pk>/agreement/", projects.AgreementView.as_view(), name="agreement"),
    path("projects/<int:pk>/items/", items.ItemListView.as_view(), name="items"),
    path("projects/<int:pk>/items/<slug:item>/", items.ItemView.as_view(), name="item"),
    path("projects/<int:pk>/imports/", files.ImportListView.as_view(), name="imports"),
    path("projects/<int:pk>/imports/<int:run>/", files.ImportView.as_view(), name="import"),
    path(
        "projects/<int:pk>/imports/<int:run>/start/",
        files.ImportStartView.as_view(),
        name="import_start",
    ),
    path(
        "projects/<int:pk>/imports/<int:run>/errors/",
        files.ImportErrorsView.as_view(),
        name="import_errors",
    ),
    path("projects/<int:pk>/exports/", files.ExportListView.as_view(), name="exports"),
    path("projects/<int:pk>/exports/<int:run>/", files.ExportView.as_view(), name="export"),
    path(
        "projects/<int:pk>/exports/<int:run>/file/",
        files.ExportFileView.as_view(),
        name="export_file",
    ),
]
