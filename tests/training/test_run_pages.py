"""Pages of runs: who may, what they show, in how many queries."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.conftest import asks_for_login
from tests.training.factories import admin, frozen, make_pairs
from tests.training.factories_runs import (
    GATE,
    checkpoint,
    grpo_curves,
    log,
    make_run,
    say,
    tell,
    write_answers,
)
from training.engine.rundir import write_json
from training.models import Device, RunInput, TrainingRun
from training.storage import directory
from webapp.accounts.models import User
from webapp.core.models import Event

pytestmark = pytest.mark.django_db
MOST = 20


@pytest.fixture
def boss(client: Client) -> Client:
    client.force_login(admin())
    return client


def get(client: Client, name: str, *args: Any, **query: Any) -> Any:
    return client.get(reverse(f"training:{name}", args=args), query)


def post(client: Client, name: str, *args: Any, **data: Any) -> Any:
    return client.post(reverse(f"training:{name}", args=args), data)


def text(response: Any) -> str:
    return str(response.content.decode())


PAGES: list[tuple[str, tuple[Any, ...]]] = [
    ("runs", ()), ("run_new", ()), ("run_compare", ()), ("run_storage", ()), ("run_rules", ()),
    ("run", (1,)), ("run_live", (1,)), ("run_samples", (1,)), ("run_values", (1,)),
    ("run_file", (1, "config.json")),
]  # fmt: skip
POSTS: list[tuple[str, tuple[Any, ...]]] = [
    ("run_cancel", (1,)), ("run_resume", (1,)), ("run_clone", (1,)), ("run_note", (1,)),
    ("run_pin", (1,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), PAGES + POSTS)
def test_only_administrators_see_runs(
    client: Client, name: str, args: tuple[Any, ...], bob: User, chen: User, vera: User
) -> None:
    url = reverse(f"training:{name}", args=args)
    ask = client.post if (name, args) in POSTS else client.get
    assert asks_for_login(ask(url))
    for user in (bob, chen, vera):
        client.force_login(user)
        assert ask(url).status_code == 403


@pytest.mark.parametrize(("name", "args"), PAGES + POSTS)
def test_wrong_methods_and_unknown_ids(boss: Client, name: str, args: tuple[Any, ...]) -> None:
    url = reverse(f"training:{name}", args=args)
    if (name, args) in POSTS:
        assert boss.get(url).status_code == 405
        assert boss.post(url).status_code == 404
    else:
        assert boss.put(url).status_code == 405
        assert boss.get(url).status_code == (404 if args else 200)


# The list


def test_the_list_shows_queue_devices_and_progress(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    assert "No run yet" in text(get(boss, "runs"))
    assert "No worker has announced a device yet" in text(get(boss, "runs"))
    busy = make_run(name="At work", step=25, stage="grpo", first_metric_at=timezone.now())
    Device.objects.create(name="gpu-1", run=busy, taken_at=timezone.now(), seen_at=timezone.now())
    for n in range(20):
        make_run(state="queued", name=f"Waits {n}", step=0)
    make_run("sft", "succeeded", name="Old and pinned", pinned=True)
    with django_assert_max_num_queries(10):
        page = text(get(boss, "runs"))
    assert page.index("Old and pinned") < page.index("Waits 19") < page.index("Waits 0")
    assert "25 / 100" in page
    assert "place 20" in page
    assert "gpu-1" in page
    assert "in the median of the last runs" in page
    only = text(get(boss, "runs", kind="sft"))
    assert "Old and pinned" in only
    assert "Waits 0" not in only
    active = text(get(boss, "runs", state="active"))
    assert "At work" in active
    assert "Old and pinned" not in active
    assert "No run fits." in text(get(boss, "runs", state="failed"))


# One run


def test_a_run_shows_curves_alerts_and_everything_it_logged(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    run = make_run(step=100)
    grpo_curves(run)
    for step in (40, 60, 80):
        say(run, step, rule=["hacking", "length_spike", "collapse"][step // 20 - 2])
    for n in range(3):
        make_run("sft", "succeeded", name=f"User {n}", parent=run)
    checkpoint(run, 50)
    with django_assert_max_num_queries(MOST):
        page = text(get(boss, "run", run.pk))
    assert page.count("▲1") >= 3  # on the pinned curves
    assert "my_own_metric" in page
    assert "3 alerts" in page
    assert "Reward, with the weights of its step" in page or "reward, with the weights" in page
    assert "planned" in page  # the schedule of α
    assert "checkpoints/checkpoint-50" in page
    assert "User 2" in page
    assert " style=" not in page
    assert "onclick" not in page


def test_the_live_part_polls_while_it_works_and_stops_with_the_run(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    run = make_run(step=3, stage="grpo", heartbeat_at=timezone.now())
    grpo_curves(run, 3)
    with django_assert_max_num_queries(9):
        part = text(get(boss, "run_live", run.pk))
    assert 'hx-trigger="every 3s"' in part
    assert "step 3 of 100" in part
    assert "<html" not in part
    for name in ("alerts", "more"):
        with django_assert_max_num_queries(9):
            assert "every 15s" in text(get(boss, "run_live", run.pk, part=name))
    done = make_run(state="succeeded")
    response = get(boss, "run_live", done.pk)
    assert (response.status_code, response["HX-Refresh"]) == (204, "true")
    assert 'hx-trigger="every' not in text(get(boss, "run", done.pk))


def test_ten_thousand_steps_stay_small(boss: Client, django_assert_max_num_queries: Any) -> None:
    run = make_run(step=10_000, steps=10_000)
    grpo_curves(run, 10_000)
    with django_assert_max_num_queries(9):
        part = text(get(boss, "run_live", run.pk))
    counts = [len(found.split()) for found in re.findall(r'data-steps="([^"]*)"', part)]
    assert len(counts) == 4
    assert all(200 < count <= 300 for count in counts)
    assert len(part) < 80_000


def test_a_step_that_came_again_counts_as_the_later_line_says() -> None:
    from training.selectors.run_pages.curves import read_curves

    run = make_run()
    log(run, [1, 2, 3], reward=lambda s: s)
    log(run, [2, 3, 4], reward=lambda s: 10 * s)
    assert read_curves(run.pk).pairs("reward") == [(1, 1), (2, 20), (3, 30), (4, 40)]


def test_kl_has_its_calibrated_band_or_is_not_measured(boss: Client) -> None:
    run = make_run()
    log(run, range(1, 11), kl=lambda _s: 0.16)
    assert "the band up to 0.8 that the first 5 steps" in text(get(boss, "run_live", run.pk))
    free = make_run(config={"grpo": {"beta": 0.0}})
    log(free, range(1, 11), reward=lambda s: s)
    page = text(get(boss, "run_live", free.pk))
    assert "Not measured: beta is 0" in page
    assert 'id="curve-kl"' not in page


def test_runs_of_every_kind_and_state_open(boss: Client) -> None:
    for kind in ("sft", "reward_model", "grpo", "evaluate"):
        for state in ("queued", "running", "failed", "succeeded"):
            run = make_run(kind, state, steps=0)
            assert get(boss, "run", run.pk).status_code == 200, (kind, state)
            assert get(boss, "run_values", run.pk).status_code == 200


def test_members_of_a_reward_model_have_a_curve_each(boss: Client) -> None:
    run = make_run("reward_model", steps=40)
    for name in ("members/0", "members/1", "auditors/0"):
        log(run, range(1, 41), name, **{f"{name.replace('/', '__')}__loss": lambda s: 1 / s})
    page = text(get(boss, "run", run.pk))
    plot = page[page.index('id="curve-loss"') :].partition("</figure>")[0]
    assert len(re.findall("data-steps=", plot)) == 3
    assert "member 1" in plot
    assert "held out 0" in plot


# Alerts


def test_an_alert_says_what_it_saw_and_a_click_starts_its_clone_once(
    boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    grpo_curves(run)
    alert = say(run)
    page = text(get(boss, "run", run.pk))
    card = page[page.index(f'id="alert-{alert.pk}"') :].partition("</article>")[0]
    assert "Answers jumped from 12 to 40 tokens." in card
    assert card.count("<svg") >= 2
    assert "<del>0.04</del>" in card
    assert "<ins>0.06</ins>" in card
    assert f"{reverse('training:run_rules')}#length_spike" in card
    made: list[Any] = []

    def clone(**asked: Any) -> TrainingRun:
        made.append(asked)
        return make_run(name="The clone", parent=run, from_alert=alert)

    monkeypatch.setattr("training.services.runs.clone", clone)
    key = re.search(r'name="key" value="(\w+)"', card)
    assert key is not None
    response = post(boss, "run_clone", run.pk, alert=alert.pk, key=key[1])
    assert (made[0]["changes"], made[0]["from_alert"]) == ({"grpo.beta": 0.06}, alert)
    assert made[0]["key"] == key[1]
    clone_pk = TrainingRun.objects.get(name="The clone").pk
    assert response["Location"] == reverse("training:run", args=[clone_pk])
    assert "Started from this alert" in text(get(boss, "run", run.pk))
    theirs = text(get(boss, "run", clone_pk))
    assert f"#alert-{alert.pk}" in theirs
    other = make_run()
    assert post(boss, "run_clone", other.pk, alert=alert.pk).status_code == 404


def test_an_alert_in_chinese_is_told_from_its_numbers(boss: Client) -> None:
    from django.utils import translation

    from training.words.rules import sentence

    run = make_run()
    alert = say(run)
    assert sentence(alert.rule, alert.evidence) == "Answers jumped from 12 to 40 tokens."
    alert.evidence["message"] = "changed words"
    assert sentence(alert.rule, alert.evidence) == "changed words"
    with translation.override("zh-hans"):
        told = sentence(alert.rule, alert.evidence)
    assert "12" in told
    assert "40" in told
    assert told != "changed words"
    with translation.override("zh-hans"):
        assert sentence("length_spike", {"message": "no numbers"}) == "no numbers"


# Answers


PARTS = {"quality": 0.75, "personalization": 0.25, "redundancy": 0.0, "spread/q": None}
ROW = {
    "persona": "Busy expert.", "prompt": "How?", "reward": 0.5, "advantage": -1.25, "parts": PARTS,
}  # fmt: skip


def test_answers_of_a_step_with_their_parts(boss: Client) -> None:
    run = make_run()
    rows = [{**ROW, "step": step, "completion": f"answer {step}"} for step in (1, 2, 2, 5)]
    rows.append({**ROW, "step": 0, "eval": True, "completion": "held out"})
    write_answers(run, rows)
    last = text(get(boss, "run_samples", run.pk))
    assert "Answers at step 5: 1 of 1" in last
    assert "<html" in last
    two = text(get(boss, "run_samples", run.pk, step=3))
    assert "Answers at step 2: 2 of 2" in two
    assert "0.750" in two
    assert "-1.25" in two
    assert "spread/q" not in two  # nobody measured it
    assert "Earlier step" in two
    assert "Later step" in two
    assert "held out" in text(get(boss, "run_samples", run.pk, step=0, evaluation=1))
    url = reverse("training:run_samples", args=[run.pk])
    part = boss.get(url, headers={"HX-Request": "true", "HX-Target": "answers"})
    assert "<html" not in text(part)


def test_hostile_answers_are_shown_as_they_are(boss: Client) -> None:
    run = make_run(message="<b>bold</b>", state="failed", reason="error", log_tail="<i>log</i>")
    evil = '<script>alert("x")</script>'
    write_answers(run, [{**ROW, "step": 1, "completion": evil, "prompt": evil, "persona": evil}])
    log(run, [1, 2], "grpo", **{evil: lambda s: s})
    tell(run, "phrases", found=[{"text": evil, "early": 0.1, "late": 0.5, "lift": 0.1}])
    page = text(get(boss, "run", run.pk))
    assert "<script>alert" not in page
    assert "<b>bold" not in page
    assert "<i>log" not in page
    assert "&lt;script&gt;" in page


def test_answers_that_are_not_on_this_machine_are_no_error(boss: Client) -> None:
    run = make_run()
    write_answers(run, [{**ROW, "step": 1, "completion": "a"}])
    (directory(run.directory) / "samples.jsonl").unlink()
    assert "is not on this machine" in text(get(boss, "run", run.pk))


# What came of it


def test_the_gate_of_a_reward_model_with_every_check(boss: Client) -> None:
    run = make_run("reward_model", "succeeded")
    tell(run, "gate", **GATE)
    page = text(get(boss, "run", run.pk))
    card = page[page.index("Gate of the reward model") :].partition("</section>")[0]
    assert "≥ 0.95" in card
    assert "≤ 1.00e−4" in card
    assert "Probe: vague" in card
    assert card.count(">failed<") == 2  # the probe, and the whole
    assert "✗ 0.5" in card


def test_evaluations_before_in_the_middle_and_after(boss: Client) -> None:
    run = make_run("grpo", "succeeded", step=100)
    log(run, [0, 50, 100], "eval", eval__parts__quality=lambda s: 0.5 + s / 1000)
    page = text(get(boss, "run", run.pk))
    assert 'step 50 <span class="muted">(50 %)</span>' in page
    assert '<td class="num">0.55</td>' in page


def test_an_evaluation_says_what_it_measured(boss: Client) -> None:
    facts = {
        "answers": 40, "n_err": 3, "degenerate": 0, "words": 11.5, "passed": False,
        "means": {"quality": 0.7, "quality/auditors": 0.6, "truth/match": 0.5, "mine": 0.4},
        "limits": {"errors": 0.05, "degenerate": 0.05},
    }  # fmt: skip
    run = make_run("evaluate", "succeeded", steps=0, manifest={"facts": facts})
    page = text(get(boss, "run", run.pk))
    assert "no floor to build on" in page
    assert "at most 5 %" in page
    assert "Quality, by a model held out" in page
    assert "Answers in the style that the persona wants" in page
    assert "Mine</th>" in page


def test_a_failure_says_why_and_proposes_a_change(boss: Client) -> None:
    run = make_run(
        state="failed", reason="out_of_memory", message="no room", log_tail="last line",
        changes={"grpo.batch": 32, "grpo.accumulation": 2},
    )  # fmt: skip
    page = text(get(boss, "run", run.pk))
    assert "The memory of the training machine did not suffice." in page
    assert "last line" in page
    assert "<del>64</del>" in page
    assert "Resume" in page
    form = text(get(boss, "run_new", **{"from": run.pk, "changes": 1}))
    assert re.search(r'name="grpo.batch" value="32"', form)
    assert f"{run.name} (2)" in form


def test_phrases_go_onto_the_penalty_list_of_a_clone(boss: Client) -> None:
    run = make_run("grpo", "succeeded", config={"reward": {"phrases": ["old one"]}})
    tell(run, "phrases", found=[{"text": "just for you", "early": 0.1, "late": 0.9, "lift": 0.2}])
    assert "just for you" in text(get(boss, "run", run.pk))
    url = reverse("training:run_new")
    asked = {"from": [str(run.pk)], "phrase": ["just for you", "my friend"]}
    form = text(boss.get(url, asked))
    box = re.search(r'<textarea name="reward.phrases"[^>]*>\s*([^<]*)</textarea>', form)
    assert box is not None
    assert box[1].split("\n") == ["old one", "just for you", "my friend"]


def test_lineage_both_ways(boss: Client) -> None:
    base = make_run("sft", "succeeded", name="The base")
    run = make_run(name="The policy")
    RunInput.objects.create(run=run, role="base", source=base, sha256="f" * 64)
    assert "The base" in text(get(boss, "run", run.pk))
    assert "The policy" in text(get(boss, "run", base.pk))


def test_files_of_known_names_only(boss: Client) -> None:
    run = make_run()
    write_json(directory(run.directory) / "config.json", {"kind": "grpo"})
    write_json(directory(run.directory) / "secret.json", {})
    logs = directory(run.directory) / "checkpoints" / "tensorboard"
    logs.mkdir(parents=True)
    (logs / "events.out.tfevents.1").write_bytes(b"board")
    response = get(boss, "run_file", run.pk, "config.json")
    assert json.loads(b"".join(response.streaming_content)) == {"kind": "grpo"}
    assert "attachment" in response["Content-Disposition"]
    assert Event.objects.get(action="download_run_file").details["file"] == "config.json"
    assert get(boss, "run_file", run.pk, "secret.json").status_code == 404
    assert get(boss, "run_file", run.pk, "metrics.jsonl").status_code == 404
    assert boss.get(f"/training/runs/{run.pk}/files/..%2F..%2Fconfig.json").status_code == 404
    packed = get(boss, "run_file", run.pk, "tensorboard.zip")
    assert packed.content.startswith(b"PK")
    assert b"tensorboard/events.out" in packed.content


def test_values_as_a_table(boss: Client, django_assert_max_num_queries: Any) -> None:
    run = make_run()
    grpo_curves(run, 200)
    with django_assert_max_num_queries(8):
        page = text(get(boss, "run_values", run.pk, of="pinned"))
    assert "40 of 200 steps" in page
    assert 'class="num">200</th>' in page
    assert "my_own_metric" in text(get(boss, "run_values", run.pk, of="others"))
    assert get(boss, "run_values", run.pk, of="nothing").status_code == 200


# Deeds


def test_note_pin_cancel_and_resume(boss: Client) -> None:
    run = make_run(state="queued")
    post(boss, "run_note", run.pk, note="Look at step 40.")
    post(boss, "run_pin", run.pk, pinned="1")
    post(boss, "run_cancel", run.pk)
    run.refresh_from_db()
    assert (run.note, run.pinned, run.state) == ("Look at step 40.", True, "cancelled")
    page = text(get(boss, "run", run.pk))
    assert "Look at step 40." in page
    assert "Cancel the run" not in page
    post(boss, "run_resume", run.pk)
    run.refresh_from_db()
    assert run.state == "queued"
    post(boss, "run_pin", run.pk, pinned="0")
    run.refresh_from_db()
    assert not run.pinned


def test_comparing_shows_only_what_differs(
    boss: Client, django_assert_max_num_queries: Any
) -> None:
    runs = [
        make_run("grpo", "succeeded", name=f"Beta {beta}", config={"grpo": {"beta": beta}})
        for beta in (0.02, 0.04, 0.08)
    ]
    for run in runs:
        grpo_curves(run, 20)
    url = reverse("training:run_compare")
    with django_assert_max_num_queries(12):
        page = text(boss.get(url, {"run": [run.pk for run in runs]}))
    assert "grpo.beta" in page
    assert "grpo.temperature" not in page
    assert "<td>0.08</td>" in page
    assert {"c-run-0", "c-run-1", "c-run-2"} <= set(re.findall(r"c-run-\d", page))
    assert "Choose two to 5 runs" in text(boss.get(url, {"run": [runs[0].pk]}))
    assert boss.get(url, {"run": ["x", "999", str(runs[0].pk)]}).status_code == 200


def test_storage_says_what_goes_and_asks_once_more(boss: Client, settings: Any) -> None:
    settings.PALATE_RUNS_QUOTA_GB = 1.5e-6
    run = make_run("sft", "succeeded", name="Done")
    old, result = checkpoint(run, 5), checkpoint(run, 9, path="model", final=True)
    page = text(get(boss, "run_storage"))
    assert "over the quota" in page
    assert "it is what the run made" in page
    asked = text(post(boss, "run_storage", checkpoint=old.pk))
    assert "Delete for ever" in asked
    old.refresh_from_db()
    assert old.removed_at is None
    assert post(boss, "run_storage", checkpoint=old.pk, confirm="1").status_code == 302
    old.refresh_from_db()
    assert old.removed_at is not None
    assert not (directory(run.directory) / old.path).exists()
    refused = post(boss, "run_storage", checkpoint=result.pk, confirm="1")
    assert refused.status_code == 409
    assert "it is what the run made" in text(refused)


def test_the_catalogue_has_every_rule(boss: Client) -> None:
    from training.engine.monitor.rules import EXTERNAL, RULES

    page = text(get(boss, "run_rules"))
    for name in (*(rule.name for rule in RULES), *EXTERNAL):
        assert f'<tr id="{name}">' in page
    assert "monitor.window" in page


def test_a_dataset_leads_to_its_runs(boss: Client) -> None:
    make_pairs(people=2, prompts=1)
    dataset = frozen()
    run, other = make_run("sft", name="Made with it"), make_run("sft", name="Made without")
    RunInput.objects.create(run=run, role="train", dataset=dataset, split="train", sha256="a" * 64)
    link = f"{reverse('training:runs')}?dataset={dataset.pk}"
    assert link in text(get(boss, "dataset", dataset.pk))
    page = text(boss.get(link))
    assert run.name in page
    assert other.name not in page
    assert dataset.name in page
    assert get(boss, "runs", dataset="x").status_code == 200
