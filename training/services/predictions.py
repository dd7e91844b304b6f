"""Having the reward models of a trained contestant score the answers of an unsealed round."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from arena.models import Round
from training import policies
from training.enums import RunKind, RunState
from training.launching import InputSpec
from training.models import TrainingRun
from training.selectors.ancestry import check_trained, reward_models_of
from training.selectors.round_answers import answers_of, prediction_runs
from training.services.runs import launch, next_name
from webapp.catalog.models import Contestant
from webapp.core.errors import Refused

GONE = (RunState.FAILED, RunState.CANCELLED)


def launch_predictions(
    *, actor: Any, contestant: Contestant, round_: Round, key: str | None = None
) -> TrainingRun:
    """A run that asks the reward models behind a contestant about all battles of a round.

    The same round and models give the same run, however often and from wherever it is asked; only
    after a failed one there is another. Raises Refused: `sealed`, `not_trained`, `no_reward_model`,
    `no_answers`; NotReady as every launch.
    """
    policies.check_manage(actor)
    policies.check_predictable(round_.pk)
    check_trained(contestant)
    models = reward_models_of(contestant)
    if not models:
        raise Refused(
            _("No reward model stands behind “%(name)s”: rules alone gave its reward, or nothing.")
            % {"name": contestant},
            code="no_reward_model",
        )
    sources = {branch: found.run for branch, found in models.items()}
    asked = [run for run in prediction_runs(round_) if made_of(run, sources)]
    standing = next((run for run in asked if run.state not in GONE), None)
    if standing is not None:
        return standing
    if next(answers_of(round_), None) is None:
        raise Refused(_("This round has no answers that may be shown."), code="no_answers")
    name = _("Predictions for %(round)s") % {"round": round_.name[:90]}
    return launch(
        actor=actor,
        name=next_name(name) if TrainingRun.objects.filter(name=name).exists() else name,
        kind=RunKind.PREDICT,
        preset=next(iter(sources.values())).preset,
        config={"predict": {"round": round_.pk}},
        inputs={branch: InputSpec(source=run) for branch, run in sources.items()},
        key=key or key_of(round_, sources, len(asked)),
    )


def made_of(run: TrainingRun, sources: dict[str, TrainingRun]) -> bool:
    """Whether a run asked exactly these reward models."""
    return {row.role: row.source_id for row in run.inputs.all()} == {
        branch: source.pk for branch, source in sources.items()
    }


def key_of(round_: Round, sources: dict[str, TrainingRun], tried: int) -> str:
    """Two clicks at once, in two tabs, are one run: the database takes a key once."""
    models = "-".join(str(sources[branch].pk) for branch in sorted(sources))
    return f"predict:{round_.pk}:{models}:{tried}"
