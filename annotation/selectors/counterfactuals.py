"""What the pages of counterfactual jobs show: progress, balance, refusals, the pair to review."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import BooleanField, Case, Count, F, QuerySet, When
from django.utils.translation import gettext_lazy as _

from annotation.enums import JobState, ReviewState, RewriterKind
from annotation.models import CounterfactualJob, ItemText, Project, Rewrite
from annotation.rewriting.styles import CASUAL, CONCISE, FORMAL, STEPWISE
from webapp.catalog.blind import BlindPair, difference_pair, rendered_pair
from webapp.catalog.enums import Axis

STYLES: dict[str, Any] = {
    CONCISE: _("concise"),
    STEPWISE: _("step by step"),
    FORMAL: _("formal"),
    CASUAL: _("casual"),
}
REFUSALS: dict[str, Any] = {
    "posterior": _("the outcome is not certain enough"),
    "no_style": _("the persona's features name no style"),
    "no_opposite": _("no persona of the opposite style in this language"),
    "known": _("made before"),
    "withdrawn": _("consent withdrawn, text erased"),
    "style": _("the style hardly changed"),
    "rules": _("the rules can do nothing with the text"),
    "content_numbers": _("a number got lost"),
    "content_numbers_new": _("a number came up new"),
    "content_code": _("a code block changed or got lost"),
    "content_code_new": _("a code block came up new"),
    "content_spans": _("inline code or an address got lost"),
    "content_names": _("a name or quotation got lost"),
    "content_names_new": _("names came up new"),
    "content_length": _("far too short or too long"),
    "content_language": _("another language"),
    "content_keywords": _("too few words in common"),
    "content_empty": _("nothing came back"),
    "reply_shape": _("the endpoint's answer is no chat completion"),
    "reply_blank": _("the endpoint's answer is empty"),
    "reply_cut": _("the endpoint's answer was cut off"),
    "reply_filtered": _("the endpoint refused the content"),
    "reply_unstorable": _("the endpoint's answer holds characters that cannot be kept"),
    "call_timeout": _("the endpoint did not answer in time"),
    "call_busy": _("the endpoint asks to try again later"),
    "call_server_error": _("the endpoint reports an error of its own"),
    "call_refused_by_server": _("the endpoint refused the request"),
    "call_no_connection": _("no connection to the endpoint"),
    "call_not_resolved": _("the endpoint's name cannot be resolved"),
    "call_address_refused": _("the endpoint's address is not allowed"),
    "call_redirect": _("the endpoint redirects"),
    "call_too_large": _("the endpoint's answer is too large"),
    "call_bad_json": _("the endpoint's answer is not JSON"),
    "call_bad_utf8": _("the endpoint's answer is not UTF-8"),
    "call_tls": _("no safe connection to the endpoint"),
    "call_broken_answer": _("the connection to the endpoint broke"),
}

FAILURES: dict[str, Any] = {
    "endpoint": _(
        "The endpoint failed several times in a row, so the job stopped. Pairs that were made stay."
    ),
    "unexpected": _("Something unexpected went wrong; the log of the worker says what."),
}


def jobs_of(project: Project) -> QuerySet[CounterfactualJob]:
    return CounterfactualJob.objects.filter(project=project).select_related("created_by")


@dataclass(frozen=True)
class Balance:
    """Items that prefer one style, and those that prefer its opposite, by state of review."""

    style: Any
    kept: int
    rejected: int


@dataclass(frozen=True)
class JobView:
    pk: int
    project: int
    state: str
    state_label: str
    rewriter: str
    asked: list[tuple[Any, Any]]
    by: str
    at: datetime
    total: int
    looked_at: int
    pairs: int
    refused: int
    failure: Any
    refusals: list[tuple[Any, int]]
    balance: list[Balance]
    reviewed: int
    to_review: int

    @property
    def running(self) -> bool:
        return self.state == JobState.RUNNING


def view_job(job: CounterfactualJob) -> JobView:
    report = job.report
    reviews = dict(
        job.rewrites.order_by().values_list("state").annotate(n=Count("pair", distinct=True))
    )
    refusals = report.get("refusals", {})
    return JobView(
        pk=job.pk,
        project=job.project_id,
        state=job.state,
        state_label=job.get_state_display(),
        rewriter=str(RewriterKind(job.rewriter).label),
        asked=_asked(job),
        by=job.created_by.username if job.created_by else "",
        at=job.created_at,
        total=job.total,
        looked_at=job.done,
        pairs=job.done - job.refused,
        refused=job.refused,
        failure=FAILURES.get(report.get("failure", ""), ""),
        refusals=[
            (REFUSALS.get(code, code), n)
            for code, n in sorted(refusals.items(), key=lambda pair: -pair[1])
        ],
        balance=balance_of(job),
        reviewed=sum(reviews.values()) - reviews.get(ReviewState.PROPOSED, 0),
        to_review=reviews.get(ReviewState.PROPOSED, 0),
    )


def _asked(job: CounterfactualJob) -> list[tuple[Any, Any]]:
    options = job.options
    said: list[tuple[Any, Any]] = [
        (_("Rated on"), Axis(options["axis"]).label),
        (_("Posterior at least"), f"{options['minimum']} %"),
        (_("Answers at most"), options["limit"]),
    ]
    if options.get("model"):
        said += [(_("Model"), options["model"]), (_("Address"), options["url"])]
    return said


def balance_of(job: CounterfactualJob) -> list[Balance]:
    """Counted from the items, not taken for granted."""
    original = Case(
        When(suited_to=F("source_item__persona_version"), then=True),
        default=False,
        output_field=BooleanField(),
    )
    rows = (
        job.rewrites.order_by()
        .annotate(original=original)
        .values_list("original", "checks__from", "checks__to", "state")
        .annotate(n=Count("pk"))
    )
    counts: dict[str, list[int]] = {}
    for is_original, source, target, state, n in rows:
        style = source if is_original else target
        counts.setdefault(style, [0, 0])[state == ReviewState.REJECTED] += n
    return [Balance(STYLES.get(name, name), *counts[name]) for name in sorted(counts)]


@dataclass(frozen=True)
class PairView:
    """A pair for its reviewer. A: the original, B: the rewrite."""

    pair: str
    shown: BlindPair
    people: list[tuple[str, str, Any, str]]  # pseudonym, summary, wanted style, prefers A or B
    measures: list[tuple[Any, Any, Any]]
    state: str
    state_label: str
    note: str
    diff: bool


def next_pair(job: CounterfactualJob) -> str:
    """A pair that nobody reviewed; which one is random, for its name is."""
    waiting = job.rewrites.filter(state=ReviewState.PROPOSED).order_by("pair")
    return waiting.values_list("pair", flat=True).first() or ""


def view_pair(job: CounterfactualJob, pair: str, *, diff: bool) -> PairView | None:
    """None where there is no such pair, or its texts were erased."""
    rows = list(
        job.rewrites.filter(pair=pair)
        .select_related(
            "item__body",
            "item__prompt",
            "source_item",
            "suited_to__persona",
            "suited_to__text",
        )
        .order_by("pk")
    )
    if len(rows) != 2 or not all(hasattr(row.item, "body") for row in rows):
        return None
    first = rows[0]
    original, rewritten = _texts(first, first.item.body)
    make = difference_pair if diff else rendered_pair
    checks = first.checks
    return PairView(
        pair=pair,
        shown=make("", first.item.prompt, None, original, rewritten),
        people=[_person(row) for row in rows],
        measures=_measures(checks["before"], checks["after"]),
        state=first.state,
        state_label=first.get_state_display(),
        note=first.note,
        diff=diff,
    )


def _texts(row: Rewrite, body: ItemText) -> tuple[str, str]:
    if row.checks["rewritten"] == "first":
        return body.second, body.first
    return body.first, body.second


def _person(row: Rewrite) -> tuple[str, str, Any, str]:
    original = row.suited_to_id == row.source_item.persona_version_id
    style = row.checks["from"] if original else row.checks["to"]
    text = getattr(row.suited_to, "text", None)
    return (
        row.suited_to.persona.pseudonym,
        text.summary if text else "",
        STYLES.get(style, style),
        "A" if original else "B",
    )


def _measures(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    names = {
        "characters": _("Characters"),
        "words": _("Words"),
        "lists": _("Share of lines in lists"),
        "tone": _("Casual minus formal marks in 100 words"),
    }
    return [(label, before[name], after[name]) for name, label in names.items()]
