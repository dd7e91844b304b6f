"""Addresses of the arena."""

from django.urls import path

from arena.views import answering, ballots, evidence, leaderboard, rounds

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
    path("rounds/<int:pk>/answers/start/", answering.start, name="answers_start"),
    path("rounds/<int:pk>/answers/stop/", answering.stop, name="answers_stop"),
    path("rounds/<int:pk>/answers/resume/", answering.resume, name="answers_resume"),
    path("rounds/<int:pk>/answers/progress/", answering.progress, name="answers_progress"),
    path("rounds/<int:pk>/screen/", rounds.screen, name="screen"),
    path("rounds/<int:pk>/screening/", rounds.hits, name="screening"),
    path("rounds/<int:pk>/screening/progress/", rounds.progress, name="screening_progress"),
    path("rounds/<int:pk>/remarks/", rounds.remarks, name="remarks"),
    path("rounds/<int:pk>/draft/", rounds.back_to_draft, name="back_to_draft"),
    path("rounds/<int:pk>/open/", rounds.open_, name="open"),
    path("rounds/<int:pk>/cancel/", rounds.cancel, name="cancel"),
    path("rounds/<int:pk>/close/", rounds.close, name="close"),
    path("rounds/<int:pk>/approve/", rounds.approve, name="approve"),
    path("leaderboard/", leaderboard.leaderboard, name="leaderboard"),
    path("leaderboard/history/", leaderboard.history, name="history"),
    path("leaderboard/methodology/", leaderboard.methodology, name="methodology"),
    path("leaderboard/verify_bundle.py", evidence.verify_script, name="verify_script"),
    path("leaderboard/<int:pk>/heatmap/", leaderboard.heatmap, name="heatmap"),
    path("leaderboard/<int:pk>/verify/", evidence.verify, name="verify"),
    path("leaderboard/<int:pk>/board.csv", leaderboard.leaderboard_csv, name="leaderboard_csv"),
    path("leaderboard/<int:pk>/board.json", leaderboard.leaderboard_json, name="leaderboard_json"),
    path("leaderboard/<int:pk>/board.svg", leaderboard.leaderboard_svg, name="leaderboard_svg"),
    path("leaderboard/<int:pk>/bundle.zip", evidence.bundle, name="bundle"),
    path("leaderboard/<int:pk>/votes.jsonl", evidence.votes_file, name="votes_file"),
]
