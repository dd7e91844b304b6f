"""Addresses of annotation: webhooks."""

from django.urls import URLPattern, path

from annotation.views import webhooks

urlpatterns: list[URLPattern] = [
    path("<int:pk>/webhooks/", webhooks.webhook_list, name="webhooks"),
    path("<int:pk>/webhooks/<slug:hook>/", webhooks.webhook, name="webhook"),
    path("<int:pk>/webhooks/<slug:hook>/do/", webhooks.webhook_do, name="webhook_do"),
    path("<int:pk>/webhooks/<slug:hook>/secret/", webhooks.webhook_secret, name="webhook_secret"),
    path(
        "<int:pk>/webhooks/<slug:hook>/<slug:delivery>/redeliver/",
        webhooks.redeliver,
        name="redeliver",
    ),
]
