"""Addresses of the arena's API; the site includes them under /api/v1/."""

from django.urls import path

from arena import api

app_name = "api"
urlpatterns = [
    path("rounds/", api.RoundListView.as_view(), name="rounds"),
    path("rounds/<int:pk>/", api.RoundView.as_view(), name="round"),
    path("rounds/<int:pk>/protocol/", api.ProtocolView.as_view(), name="round_protocol"),
    path("rounds/<int:pk>/leaderboard/", api.LeaderboardView.as_view(), name="round_leaderboard"),
    path("rounds/<int:pk>/bundle/", api.BundleView.as_view(), name="round_bundle"),
    path("contestants/<int:pk>/history/", api.HistoryView.as_view(), name="history"),
    path("voting/rounds/", api.OpenRoundsView.as_view(), name="voting_rounds"),
    path("voting/rounds/<int:pk>/ballot/", api.BallotView.as_view(), name="ballot"),
    path("voting/rounds/<int:pk>/undo/", api.UndoView.as_view(), name="undo"),
    path("voting/votes/", api.VoteView.as_view(), name="vote"),
    path("voting/skips/", api.SkipView.as_view(), name="skip"),
    path("voting/heartbeats/", api.HeartbeatView.as_view(), name="heartbeat"),
    path("voting/receipts/", api.ReceiptListView.as_view(), name="receipts"),
]
