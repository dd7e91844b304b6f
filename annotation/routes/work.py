"""Addresses of annotation: work."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
