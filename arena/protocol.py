"""The pre-registered protocol of a round: what the commitment fixes before the first vote."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q, QuerySet

from arena.models import Context, Entry, Round

PROTOCOL_FORMAT = "palate-protocol-1"
CONFIDENCE_PERCENT = 95


def protocol_of(round_: Round) -> dict[str, Any]:
    """Everything that decides how votes become ratings, without floats (canonical JSON)."""
    contestants = sorted(
        str(row.contestant) for row in round_.round_contestants.select_related("contestant")
    )
    return {
        "format": PROTOCOL_FORMAT,
        "round": round_key(round_),
        "name": round_.name,
        "simulated": round_.simulated,
        "contestants": contestants,
        "raters": sorted(round_.round_raters.values_list("pseudonym", flat=True)),
        "contexts": _contexts(round_),
        "strata": {
            "features": list(round_.stratum_features),
            "minimum_strata": round_.minimum_strata,
            "minimum_per_stratum": round_.minimum_per_stratum,
        },
        "axes": list(round_.axes),
        "weights_percent": dict(round_.weights),
        "planned_votes": round_.planned_votes,
        "votes_per_battle": round_.votes_per_battle,
        "stop": {
            "rule": round_.stop_rule,
            "closes_at": round_.closes_at.isoformat() if round_.closes_at else None,
        },
        "lease_minutes": round_.lease_minutes,
        "screening": {"policy": dict(round_.screening_policy), "flow": screening_flow(round_)},
        "exclusions": dict(round_.exclusions),
        "rating": rating_spec(round_),
    }


def round_key(round_: Round) -> str:
    """The name of a round in receipts and bundles."""
    return f"round-{round_.pk}"


def rating_spec(round_: Round) -> dict[str, Any]:
    """How the votes are rated; recomputing with it gives the same numbers (V10)."""
    return {
        "method": round_.tie_model,
        "both_bad": "dropped" if round_.drop_both_bad else "tie",
        "interval": "sandwich clustered by rater and context",
        "confidence_percent": CONFIDENCE_PERCENT,
        "anchor": str(round_.anchor) if round_.anchor else None,
        "seed": 0,
    }


def comparable_contexts(round_: Round) -> QuerySet[Context]:
    """Contexts of a screened round with two usable entries or more: the others have no battle."""
    usable = Count("entries", filter=Q(entries__excluded_by="", entries__screened=True))
    rows = Context.objects.filter(round=round_).annotate(usable=usable).filter(usable__gte=2)
    return Context.objects.filter(pk__in=rows.values("pk"))


def _contexts(round_: Round) -> dict[str, Any]:
    rows = comparable_contexts(round_)
    strata = rows.values("stratum").annotate(n=Count("pk")).order_by("stratum")
    return {
        "total": rows.count(),
        "holdout": rows.filter(holdout=True).count(),
        "by_stratum": {row["stratum"] or "-": row["n"] for row in strata},
    }


def screening_flow(round_: Round) -> dict[str, Any]:
    """How many entries were made, screened out by which rule, and usable. Totals only (V2)."""
    rows = Entry.objects.filter(context__round=round_)
    excluded = rows.exclude(excluded_by="").values("excluded_by").annotate(n=Count("pk"))
    return {
        "made": rows.count(),
        "excluded": {row["excluded_by"]: row["n"] for row in excluded.order_by("excluded_by")},
        "masked": rows.filter(excluded_by="").exclude(spans=[]).count(),
        "usable": rows.filter(excluded_by="", screened=True).count(),
    }
