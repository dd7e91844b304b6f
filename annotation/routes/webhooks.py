"""Addresses of annotation: webhooks."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
