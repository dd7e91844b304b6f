"""Addresses of annotation: counterfactuals."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
