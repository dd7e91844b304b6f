"""Addresses of the arena's API; the site includes them under /api/v1/."""

from django.urls import path

from arena.api import results, voting

app_name = "api"
urlpatterns = [
    path("rounds/", results.RoundListView.as_view(), name="rounds"),
    path("rounds/<int:pk>/", results.RoundView.as_view(), name="round"),
    path("rounds/<int:pk>/protocol/", results.ProtocolView.as_view(), name="round_protocol"),
    path(
        "rounds/<int:pk>/leaderboard/",
        results.LeaderboardView.as_view(),
        name="round_leaderboard",
    ),
    path("rounds/<int:pk>/bundle/", results.BundleView.as_view(), name="round_bundle"),
    path("contestants/<int:pk>/history/", results.HistoryView.as_view(), name="history"),
    path("voting/rounds/", voting.OpenRoundsView.as_view(), name="voting_rounds"),
    path("voting/rounds/<int:pk>/ballot/", voting.BallotView.as_view(), name="ballot"),
    path("voting/rounds/<int:pk>/undo/", voting.UndoView.as_view(), name="undo"),
    path("voting/votes/", voting.VoteView.as_view(), name="vote"),
    path("voting/skips/", voting.SkipView.as_view(), name="skip"),
    path("voting/heartbeats/", voting.HeartbeatView.as_view(), name="heartbeat"),
    path("voting/receipts/", voting.ReceiptListView.as_view(), name="receipts"),
]
