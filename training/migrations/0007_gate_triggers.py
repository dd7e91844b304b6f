"""What must not change once a gate has spoken, and what a promotion needs (V9, V10, V20)."""

from django.db import migrations

from webapp.core.triggers import Guard, append_only, never_emptied

FIXED = ["spec_id", "candidate_id", "checkpoint_id", "key", "created_by_id", "created_at"]
DECIDED = [*FIXED, "state", "verdict", "n_ok", "n_err", "decided_at", "candidate_evaluation_id",
           "baseline_evaluation_id"]  # fmt: skip
CASE = ["name", "row_sha256", "item", "source", "gate_id", "created_at"]


def changed(names, json=()):
    plain = [f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in names]
    return " OR ".join(plain + [f"CAST(OLD.{c} AS text) <> CAST(NEW.{c} AS text)" for c in json])


PASSED_AND_READ = (
    "EXISTS (SELECT 1 FROM training_gaterun g JOIN training_gatespec s ON s.id = g.spec_id "
    "WHERE g.id = NEW.gate_id AND g.state = 'decided' AND g.verdict = 'pass' "
    "AND g.candidate_id = NEW.run_id AND (SELECT COUNT(DISTINCT m.item) FROM training_auditmark m "
    "WHERE m.gate_id = g.id) >= s.audit)"
)
NOT_REWARDED = "EXISTS (SELECT 1 FROM training_trainingrun r WHERE r.id = NEW.run_id AND r.kind = 'sft')"


class Migration(migrations.Migration):
    dependencies = [("training", "0006_gates")]
    operations = [
        *append_only("training_gatespec"),
        Guard("training_gaterun_fixed", "training_gaterun", "UPDATE",
              "what a gate was asked never changes", changed(FIXED)),
        Guard("training_gaterun_decided", "training_gaterun", "UPDATE", "a gate decides once",
              f"OLD.state = 'decided' AND ({changed(DECIDED, ['result', 'edges'])})"),
        Guard("training_gaterun_kept", "training_gaterun", "DELETE", "gates are kept"),
        never_emptied("training_gaterun"),
        Guard("training_edgecase_fixed", "training_edgecase", "UPDATE",
              "an edge case can only be retired", changed(CASE)),
        *append_only("training_auditmark"),
        Guard("training_promotion_gate", "training_promotion", "INSERT",
              "no promotion without a passed gate and its audit",
              f"NEW.kind = 'gate' AND NOT {PASSED_AND_READ}"),
        Guard("training_promotion_baseline", "training_promotion", "INSERT",
              "only a model that no reward has trained is a baseline",
              f"NEW.kind = 'baseline' AND NOT {NOT_REWARDED}"),
        *append_only("training_promotion"),
    ]
