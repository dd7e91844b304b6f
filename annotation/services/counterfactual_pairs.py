"""From one highly rated answer to two items: the same two texts for opposite personas (F4, D8).

The persona whose answer it is prefers the original, the opposite persona prefers the rewrite: what
a model learns from both is who wants what, not that one style is better (M7).
"""

from __future__ import annotations

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from annotation.enums import Axis, DecisionSource, ItemKind, ItemState
from annotation.models import CounterfactualJob, Decision, GoldItem, Item, Project, Rewrite
from annotation.rewriting.checks import findings
from annotation.rewriting.styles import OPPOSITE, changed, style_of, tone_of
from annotation.services.items import Added, ItemDraft, add_items, content_sha256, flags_of
from annotation.services.rewriters import RewriteError, Rewriter
from webapp.catalog.enums import Split
from webapp.catalog.models import Persona, PersonaVersion
from webapp.catalog.texts import style_features

DECIDED = (DecisionSource.UNANIMOUS, DecisionSource.MAJORITY, DecisionSource.ADJUDICATED)
VERDICTS = ("first", "second")


def sources(project: Project, axis: str) -> QuerySet[Item]:
    """Decided items for a persona, with a preferred answer; gold and what is held out are none."""
    gold = GoldItem.objects.filter(item=OuterRef("pk"))
    held_out = Q(prompt__split=Split.HOLDOUT) | Q(persona_version__persona__split=Split.HOLDOUT)
    return (
        Item.objects.filter(
            ~Exists(gold),
            ~held_out,
            project=project,
            state=ItemState.DONE,
            synthetic=False,
            body__isnull=False,
            persona_version__isnull=False,
            persona_version__persona__withdrawn_at=None,
            **{
                f"{axis}_decision__verdict__in": VERDICTS,
                f"{axis}_decision__source__in": DECIDED,
            },
        )
        .select_related(
            "body",
            "prompt",
            "persona_version__persona",
            "persona_version__text",
            f"{axis}_decision",
        )
        .order_by("pk")
    )


@dataclass
class Opposites:
    """The newest version of every persona that may stand for the other side, by style."""

    by_style: dict[str, list[PersonaVersion]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def load(cls) -> Opposites:
        newer = PersonaVersion.objects.filter(persona=OuterRef("persona"), n__gt=OuterRef("n"))
        versions = (
            PersonaVersion.objects.filter(
                ~Exists(newer), text__isnull=False, persona__withdrawn_at=None
            )
            .exclude(persona__split=Split.HOLDOUT)
            .select_related("persona", "text")
            .order_by("pk")
        )
        found = cls()
        for version in versions:
            style = style_of(version.persona.features)
            if style:
                found.by_style[style].append(version)
        return found

    def of(self, version: PersonaVersion, style: str, seed: str) -> PersonaVersion | None:
        """Somebody of the opposite style who reads the same language; drawn by the seed."""
        language = version.persona.features.get("language", "")
        fit = [
            other
            for other in self.by_style[OPPOSITE[style]]
            if other.persona.features.get("language", "") == language
        ]
        return fit[_draw(seed, len(fit))] if fit else None


def _draw(seed: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % size


@dataclass(frozen=True)
class Proposal:
    """A rewrite that passed its checks, before anything is written."""

    source: Item
    suited: PersonaVersion
    opposite: PersonaVersion
    original: str
    rewritten: str
    style: str
    checks: dict[str, Any]


def propose(
    source: Item, axis: str, opposites: Opposites, rewriter: Rewriter, seed: str
) -> Proposal:
    """Rewrite the preferred answer against its persona. Raises RewriteError with the reason."""
    version = source.persona_version
    assert version is not None
    style = style_of(version.persona.features)
    if not style:
        raise RewriteError("no_style")
    opposite = opposites.of(version, style, f"{seed}:{source.public_id}")
    if opposite is None:
        raise RewriteError("no_opposite")
    verdict = getattr(source, f"{axis}_decision").verdict
    original = source.body.first if verdict == "first" else source.body.second
    rewritten = rewriter(source.prompt.messages, original, OPPOSITE[style])
    checks = check(original, rewritten, OPPOSITE[style])
    return Proposal(source, version, opposite, original, rewritten, style, checks)


def check(original: str, rewritten: str, to: str) -> dict[str, Any]:
    """The measures of a rewrite. Raises RewriteError where content or style are not as wanted."""
    found = findings(original, rewritten)
    if found:
        raise RewriteError(f"content_{found[0].code}")
    before, after = style_features(original), style_features(rewritten)
    tones = (tone_of(original), tone_of(rewritten))
    if not changed(to, before, after, tones):
        raise RewriteError("style")
    if flags_of(original, rewritten):
        raise RewriteError("style")
    return {
        "to": to,
        "before": {**before, "tone": tones[0]},
        "after": {**after, "tone": tones[1]},
    }


def keep_pair(job: CounterfactualJob, proposal: Proposal) -> list[Rewrite]:
    """Write both directions in the caller's transaction. Raises RewriteError if one is there."""
    _hold_consent(proposal)
    pair = secrets.token_hex(16)
    drafts = [
        _draft(job, proposal, pair, version) for version in (proposal.suited, proposal.opposite)
    ]
    known = Item.objects.filter(
        project=job.project_id, content_sha256__in=[content_sha256(draft) for draft in drafts]
    )
    if known.exists():
        raise RewriteError("known")
    added = add_items(project=job.project, drafts=drafts)
    people = (proposal.suited, proposal.opposite)
    return [
        _rewrite(job, proposal, pair, one, draft, people if n == 0 else people[::-1])
        for n, (one, draft) in enumerate(zip(added, drafts, strict=True))
    ]


def _hold_consent(proposal: Proposal) -> None:
    """Rewriting takes a while: what was erased meanwhile does not come back (V14)."""
    people = sorted({proposal.suited.persona_id, proposal.opposite.persona_id})
    rows = Persona.objects.select_for_update(no_key=True).filter(pk__in=people).order_by("pk")
    list(rows.values_list("pk", flat=True))
    if Persona.objects.filter(pk__in=people, withdrawn_at=None).count() < len(people):
        raise RewriteError("withdrawn")


def _draft(
    job: CounterfactualJob, proposal: Proposal, pair: str, version: PersonaVersion
) -> ItemDraft:
    """Which text is first is drawn, so that the better one stands on neither side more often."""
    texts = [proposal.original, proposal.rewritten]
    if _draw(f"{pair}:{version.pk}", 2):
        texts.reverse()
    return ItemDraft(
        prompt_id=proposal.source.prompt_id,
        prompt_digest=proposal.source.prompt.text_hash,
        first=texts[0],
        second=texts[1],
        persona_version_id=version.pk,
        kind=ItemKind.COUNTERFACTUAL,
        synthetic=True,
        details={"counterfactual_pair": pair, "rewriter": rewriter_name(job)},
        source=f"counterfactual:{proposal.source.public_id[:8]}",
    )


def rewriter_name(job: CounterfactualJob) -> str:
    model = job.options.get("model", "")
    return f"{job.rewriter}:{model}" if model else str(job.rewriter)


def _rewrite(
    job: CounterfactualJob,
    proposal: Proposal,
    pair: str,
    added: Added,
    draft: ItemDraft,
    people: tuple[PersonaVersion, PersonaVersion],
) -> Rewrite:
    """The item's outcome by construction: its persona prefers the text in its own style."""
    suited, opposite = people
    wanted = proposal.original if suited == proposal.suited else proposal.rewritten
    verdict = "first" if draft.first == wanted else "second"
    decision = Decision.objects.create(
        item_id=added.item_id,
        axis=Axis.PERSONALIZATION,
        n=1,
        verdict=verdict,
        source=DecisionSource.SYNTHETIC,
        posterior={verdict: 1.0},
    )
    Item.objects.filter(pk=added.item_id).update(
        state=ItemState.DONE, personalization_decision=decision
    )
    rewritten = "first" if draft.first == proposal.rewritten else "second"
    return Rewrite.objects.create(
        job=job,
        source_item=proposal.source,
        item_id=added.item_id,
        suited_to=suited,
        opposite=opposite,
        pair=pair,
        checks={**proposal.checks, "from": proposal.style, "rewritten": rewritten},
    )


def posterior_of(item: Item, axis: str) -> float:
    decision = getattr(item, f"{axis}_decision")
    posterior: Mapping[str, float] = decision.posterior
    return posterior.get(decision.verdict, 0.0)
