"""Addresses of annotation: imports."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
