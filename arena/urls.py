"""Addresses of the arena."""

from django.urls import path

from arena.views import ballots, rounds

app_name = "arena"
urlpatterns = [
    path("vote/", ballots.vote, name="vote"),
    path("vote/undo/", ballots.undo, name="undo"),
    path("vote/skip/", ballots.skip, name="skip"),
    path("vote/heartbeat/", ballots.heartbeat, name="heartbeat"),
    path("vote/prefetch/", ballots.prefetch, name="prefetch"),
    path("vote/draft/", ballots.draft, name="draft"),
    path("vote/difference/", ballots.difference, name="diff"),
    path("vote/receipts/", ballots.receipts, name="receipts"),
    path("vote/keys/", ballots.keys, name="keys"),
    path("rounds/", rounds.round_list, name="round_list"),
    path("rounds/compose/", rounds.compose, name="compose"),
    path("rounds/forecast/", rounds.forecast_part, name="forecast"),
    path("rounds/<int:pk>/", rounds.round_detail, name="round_detail"),
    path("rounds/<int:pk>/edit/", rounds.edit, name="edit"),
    path("rounds/<int:pk>/screen/", rounds.screen, name="screen"),
    path("rounds/<int:pk>/screening/", rounds.hits, name="screening"),
    path("rounds/<int:pk>/screening/progress/", rounds.progress, name="screening_progress"),
    path("rounds/<int:pk>/draft/", rounds.back_to_draft, name="back_to_draft"),
    path("rounds/<int:pk>/open/", rounds.open_, name="open"),
    path("rounds/<int:pk>/cancel/", rounds.cancel, name="cancel"),
    path("rounds/<int:pk>/close/", rounds.close, name="close"),
    path("rounds/<int:pk>/approve/", rounds.approve, name="approve"),
]
