"""Addresses of annotation: counterfactuals."""

from django.urls import URLPattern, path

from annotation.views import counterfactuals as views

BASE = "<int:pk>/counterfactuals/"
urlpatterns: list[URLPattern] = [
    path(BASE, views.counterfactuals, name="counterfactuals"),
    path(f"{BASE}<int:job>/", views.counterfactual, name="counterfactual"),
    path(
        f"{BASE}<int:job>/progress/", views.counterfactual_progress, name="counterfactual_progress"
    ),
    path(f"{BASE}<int:job>/cancel/", views.counterfactual_cancel, name="counterfactual_cancel"),
    path(f"{BASE}<int:job>/review/", views.counterfactual_review, name="counterfactual_review"),
]
