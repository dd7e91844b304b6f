"""Addresses of annotation: statistics."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
