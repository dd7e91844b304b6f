"""Addresses of annotation: exports."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
