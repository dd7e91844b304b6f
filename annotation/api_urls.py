"""Addresses of annotation's API, under /api/v1/annotation/."""

from django.urls import URLPattern

app_name = "annotation-api"
urlpatterns: list[URLPattern] = []
