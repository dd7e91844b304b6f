"""The leaderboard: results of unsealed rounds for everybody whom the setting lets in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from arena import exports, policies
from arena.enums import COMPOSITE, Axis, Variant
from arena.models import Round
from arena.selectors import history as past
from arena.selectors import leaderboard as select
from arena.selectors import statements as say
from arena.selectors.answering import cost_per_answer
from arena.selectors.lineage import lineages_of
from arena.views.board_lines import interval, lines, percent, points
from webapp.accounts.enums import Role
from webapp.catalog.strata import stratum_label
from webapp.core.charts import (
    HistoryPoint,
    HistorySeries,
    history_chart,
    mark_range,
    range_ends,
)
from webapp.core.charts_heat import heat_map
from webapp.core.http import whole_number
from webapp.core.throttle import check_downloads

FRESH_SECONDS = 300
View = Callable[..., HttpResponseBase]


def readers(view: View) -> View:
    """Let everybody in, or everybody with an account, as LEADERBOARD_PUBLIC says."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not select.may_read(request.user):
            return redirect_to_login(request.get_full_path())
        return view(request, *args, **kwargs)

    guarded.allowed_roles = tuple(Role)  # type: ignore[attr-defined]
    return login_not_required(guarded)


def lasting(response: HttpResponseBase) -> HttpResponseBase:
    """Results of an unsealed round do not change: let caches keep them for a while."""
    if select.may_read(AnonymousUser()):
        patch_cache_control(response, public=True, max_age=FRESH_SECONDS)
    else:
        patch_cache_control(response, private=True, max_age=FRESH_SECONDS)
        patch_vary_headers(response, ["Cookie"])
    return response


def _page(request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponse:
    """A page holds the reader's name and language, so only his own browser may keep it."""
    response = render(request, template, dict(context))
    patch_cache_control(response, private=True, max_age=0, must_revalidate=True)
    return response


def _choices(request: HttpRequest) -> dict[str, str]:
    return {
        "axis": request.GET.get("axis", ""),
        "stratum": request.GET.get("stratum", ""),
        "variant": request.GET.get("variant", "") or Variant.ALL.value,
    }


def _chosen_round(request: HttpRequest, rounds: list[Round]) -> Round | None:
    """The round that was asked for, else the newest unsealed one."""
    wanted = request.GET.get("round", "")
    if not wanted:
        return rounds[0] if rounds else None
    pk = whole_number(wanted) or 0
    return next((row for row in rounds if row.pk == pk), None) or select.access_results(
        request.user, pk
    )


# --- the board --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tab:
    label: str
    url: str
    current: bool


@readers
@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    """One board: the newest unsealed round on the overall axis unless something else is chosen."""
    rounds = list(select.unsealed_rounds())
    round_ = _chosen_round(request, rounds)
    if round_ is None:
        return _page(request, "arena/leaderboard.html", {"board": None})
    board = select.read_board(round_, **_choices(request))
    costs = cost_per_answer(round_)
    context = {
        **_shared(board),
        "rounds": rounds,
        "lines": lines(board, costs),
        "costs": bool(costs),
        "lineages": lineages_of(row.contestant_id for row in board.rows),
        "admin": policies.may_administer(request.user),
        "tabs": _tabs(board, reverse("arena:leaderboard")),
        "ends": range_ends(*mark_range(exports.interval_rows(board))),
        "picture": exports.picture_title(board),
    }
    return _page(request, "arena/leaderboard.html", context)


def _shared(board: select.Board) -> dict[str, Any]:
    """What the pages of one board have in common."""
    return {
        "board": board,
        "round": board.round,
        "sentences": say.board_sentences(board),
        "strata": [(stratum, stratum_label(stratum)) for stratum in board.strata],
        "variants": _variants(board),
        "axis_label": say.axis_label(board.axis),
        "stratum_label": stratum_label(board.stratum),
        "variant_label": say.variant_label(board.variant),
        "confidence": round(100 * float(board.snapshot.spec.get("confidence", 0.95))),
        "query": _query(board),
    }


def _variants(board: select.Board) -> list[tuple[str, str]]:
    """Which votes can be chosen: without registered exclusions there is only one set."""
    if board.round.exclusions or board.variant == Variant.EXCLUDED:
        return [(variant.value, str(variant.label)) for variant in Variant]
    return [(Variant.ALL.value, str(Variant.ALL.label))]


def _query(board: select.Board, **changes: str) -> str:
    chosen = {"axis": board.axis, "stratum": board.stratum, "variant": board.variant, **changes}
    return urlencode(chosen)


def _tabs(board: select.Board, path: str) -> list[Tab]:
    """One link per axis; the stratum is kept where the axis has it."""
    results = board.snapshot.details["results"]
    tabs = []
    for axis in board.axes:
        stratum = board.stratum if board.stratum in results[axis] else ""
        query = _query(board, axis=axis, stratum=stratum)
        url = f"{path}?round={board.round.pk}&{query}"
        tabs.append(Tab(say.axis_label(axis), url, axis == board.axis))
    return tabs


@readers
@require_safe
def heatmap(request: HttpRequest, pk: int) -> HttpResponse:
    """Who won how often against whom."""
    round_ = select.access_results(request.user, pk)
    board = select.read_board(round_, **_choices(request))
    fractions, votes = board.result["win_fraction"], board.pair_votes
    table = [
        [name, *(_cell(fractions[i][j], votes[i][j], i == j) for j in range(len(board.names)))]
        for i, name in enumerate(board.names)
    ]
    context = {
        **_shared(board),
        "chart": heat_map(board.names, fractions, votes, title=exports.picture_title(board)),
        "columns": ["", *board.names],
        "table": table,
        "tabs": _tabs(board, reverse("arena:heatmap", args=[pk])),
    }
    return _page(request, "arena/heatmap.html", context)


def _cell(share: float | None, votes: int, diagonal: bool) -> str:
    if diagonal:
        return ""
    return "–" if share is None else f"{percent(share)} / {votes:,}"


# --- files ------------------------------------------------------------------------------------


def download(request: HttpRequest, pk: int) -> Round:
    """The unsealed round whose file is asked for; strangers may not ask without end."""
    round_ = select.access_results(request.user, pk)
    check_downloads(request)
    return round_


def _boards(request: HttpRequest, round_: Round) -> list[select.Board]:
    """The boards that the query names; without a query all of the round."""
    return select.read_boards(
        round_,
        axis=request.GET.get("axis", ""),
        stratum=request.GET.get("stratum"),
        variant=request.GET.get("variant", ""),
    )


@readers
@require_safe
def leaderboard_csv(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The boards of a round as CSV."""
    round_ = download(request, pk)
    lines = exports.leaderboard_csv(_boards(request, round_))
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = _attachment(round_, "leaderboard.csv")
    return lasting(response)


@readers
@require_safe
def leaderboard_json(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The boards of a round with matrices and notes as JSON."""
    round_ = download(request, pk)
    data = exports.leaderboard_json(round_, _boards(request, round_))
    response = JsonResponse(data, json_dumps_params={"ensure_ascii": False, "allow_nan": False})
    response["Content-Disposition"] = _attachment(round_, "leaderboard.json")
    return lasting(response)


def _attachment(round_: Round, what: str) -> str:
    return f'attachment; filename="{exports.file_name(round_, what)}"'


@readers
@require_safe
def leaderboard_svg(request: HttpRequest, pk: int) -> HttpResponseBase:
    """One board as a picture that other sites may show."""
    round_ = download(request, pk)
    board = select.read_board(round_, **_choices(request))
    response = HttpResponse(
        exports.leaderboard_svg(board), content_type="image/svg+xml; charset=utf-8"
    )
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    patch_vary_headers(response, ["Cookie", "Accept-Language"])
    return lasting(response)


# --- history and method -----------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """Rounds on one scale: a chart where there are several, a table always."""

    chart: SafeString | None
    columns: list[past.HistoryRound]
    rows: list[tuple[str, list[str]]]


@readers
@require_safe
def history(request: HttpRequest) -> HttpResponse:
    """Ratings over rounds, on one scale only where rounds share contestants."""
    wanted = request.GET.get("axis", "")
    axis = wanted if wanted in select.AXES else COMPOSITE
    simulated = request.GET.get("votes", "") == "simulated"
    found = past.read_history(axis, simulated=simulated)
    context = {
        "history": found,
        "chains": _chains(found),
        "notes": say.note_sentences(found.notes),
        "simulated": simulated,
        "simulated_sentence": say.simulated_sentence(),
        "has_simulated": past.has_simulated_rounds(),
        "tabs": [
            Tab(
                say.axis_label(name),
                "?" + urlencode({"axis": name, "votes": "simulated" if simulated else ""}),
                name == axis,
            )
            for name in (COMPOSITE, *Axis.values)
        ],
        "axis": axis,
        "axis_label": say.axis_label(axis),
    }
    return _page(request, "arena/history.html", context)


def _chains(found: past.RatingHistory) -> list[Chain]:
    return [_chain(found, number) for number in sorted({row.chain for row in found.rounds})]


def _chain(found: past.RatingHistory, number: int) -> Chain:
    columns = [row for row in found.rounds if row.chain == number]
    place = {row.id: at for at, row in enumerate(columns)}
    by_name: dict[str, dict[int, past.HistoryRow]] = {}
    for entry in found.rows:
        if entry.chain == number:
            by_name.setdefault(entry.row.contestant, {})[place[entry.round_id]] = entry
    series = [
        HistorySeries(name, [_point(at, entry) for at, entry in sorted(entries.items())])
        for name, entries in by_name.items()
    ]
    chart = history_chart([row.label for row in columns], series) if len(columns) > 1 else None
    rows = [
        (name, [_cell_of(entries.get(at)) for at in range(len(columns))])
        for name, entries in by_name.items()
    ]
    return Chain(chart, columns, rows)


def _point(at: int, entry: past.HistoryRow) -> HistoryPoint:
    rating = float("nan") if entry.joined_rating is None else entry.joined_rating
    lo = rating if entry.joined_lo is None else entry.joined_lo
    hi = rating if entry.joined_hi is None else entry.joined_hi
    return HistoryPoint(at, rating, lo, hi)


def _cell_of(entry: past.HistoryRow | None) -> str:
    if entry is None or entry.joined_rating is None:
        return "–"
    bounds = interval(entry.joined_lo, entry.joined_hi)
    return f"{points(entry.joined_rating)} ({bounds})"


@readers
@require_safe
def methodology(request: HttpRequest) -> HttpResponse:
    """How ratings are made, what they cannot say, and how to check them."""
    newest = select.unsealed_rounds().first()
    context = {"approvals": settings.UNSEAL_APPROVALS, "newest": newest}
    return _page(request, "arena/methodology.html", context)
