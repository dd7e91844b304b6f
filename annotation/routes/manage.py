"""Addresses of annotation: manage."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
