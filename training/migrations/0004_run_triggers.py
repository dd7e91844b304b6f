"""What must not change once a run is made, held by the database itself (V9, V10)."""

from django.db import migrations

from webapp.core.triggers import Guard, append_only, never_emptied

LEGAL_MOVES = [
    ("queued", "starting"), ("queued", "cancelled"),
    ("starting", "running"), ("starting", "stopping"), ("starting", "failed"),
    ("starting", "queued"),
    ("running", "stopping"), ("running", "succeeded"), ("running", "failed"),
    ("stopping", "cancelled"), ("stopping", "succeeded"), ("stopping", "failed"),
    ("failed", "queued"), ("cancelled", "queued"),
]
ASKED = [
    "kind", "preset", "config_sha256", "seed", "key", "parent_id", "from_alert_id", "directory",
    "created_by_id", "created_at",
]
SAVED = ["run_id", "step", "path", "sha256", "size", "final", "at"]


def moves():
    legal = " OR ".join(f"(OLD.state = '{a}' AND NEW.state = '{b}')" for a, b in LEGAL_MOVES)
    return f"OLD.state <> NEW.state AND NOT ({legal})"


def changed(names, json=()):
    plain = [f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in names]
    return " OR ".join(plain + [f"CAST(OLD.{c} AS text) <> CAST(NEW.{c} AS text)" for c in json])


class Migration(migrations.Migration):
    dependencies = [("training", "0003_runs")]
    operations = [
        Guard("training_trainingrun_moves", "training_trainingrun", "UPDATE",
              "illegal move of a run", moves()),
        Guard("training_trainingrun_asked", "training_trainingrun", "UPDATE",
              "what a run was asked to do never changes", changed(ASKED, ["config"])),
        Guard("training_trainingrun_kept", "training_trainingrun", "DELETE", "runs are kept"),
        never_emptied("training_trainingrun"),
        *append_only("training_runinput"),
        *append_only("training_metricline"),
        *append_only("training_runevent"),
        *append_only("training_alert"),
        *append_only("training_sampleline"),
        Guard("training_checkpoint_frozen", "training_checkpoint", "UPDATE",
              "a checkpoint never changes", changed(SAVED)),
        Guard("training_checkpoint_kept", "training_checkpoint", "DELETE",
              "checkpoints are kept"),
        never_emptied("training_checkpoint"),
    ]
