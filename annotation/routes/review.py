"""Addresses of annotation: disputed items, appeals and reported problems."""

from django.urls import URLPattern, path

from annotation.views import inbox, review

urlpatterns: list[URLPattern] = [
    path("<int:pk>/disputes/", review.disputes, name="disputes"),
    path("<int:pk>/adjudicate/", review.adjudicate, name="adjudicate"),
    path("<int:pk>/adjudicate/claim/", review.claim, name="claim"),
    path("<int:pk>/adjudicate/blind/", review.blind, name="blind"),
    path("<int:pk>/adjudicate/decide/", review.decide, name="decide"),
    path("<int:pk>/adjudicate/back/", review.give_back, name="give_back"),
    path("<int:pk>/adjudicate/difference/", review.difference, name="adjudicate_difference"),
    path("<int:pk>/appeals/", inbox.appeals, name="appeals"),
    path("<int:pk>/appeals/<int:appeal>/", inbox.appeal, name="appeal"),
    path("<int:pk>/problems/", inbox.problems, name="problems"),
    path("<int:pk>/problems/<int:item>/", inbox.resolve, name="resolve"),
]
