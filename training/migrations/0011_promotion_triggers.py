"""A promotion is of the weights that passed, and a baseline has no rewarded model behind it (V20).

The guards of 0007 said less: other weights of the same run could enter by its gate, and what was
fine-tuned on top of a model that reward had trained was a baseline.
"""

from importlib import import_module

from django.db import migrations

from webapp.core.triggers import Guard

OLD = {
    operation.name: operation
    for operation in import_module("training.migrations.0007_gate_triggers").Migration.operations
    if isinstance(operation, Guard)
}
GATE, BASELINE = OLD["training_promotion_gate"], OLD["training_promotion_baseline"]

PASSED_AND_READ = (
    "EXISTS (SELECT 1 FROM training_gaterun g JOIN training_gatespec s ON s.id = g.spec_id "
    "WHERE g.id = NEW.gate_id AND g.state = 'decided' AND g.verdict = 'pass' "
    "AND g.candidate_id = NEW.run_id AND g.checkpoint_id IS NOT DISTINCT FROM NEW.checkpoint_id "
    "AND (SELECT COUNT(DISTINCT m.item) FROM training_auditmark m WHERE m.gate_id = g.id) "
    ">= s.audit)"
)
# UNION without ALL ends, whatever stands in the rows.
NOT_REWARDED = (
    "EXISTS (SELECT 1 FROM training_trainingrun r WHERE r.id = NEW.run_id AND r.kind = 'sft') "
    "AND NOT EXISTS (WITH RECURSIVE behind(id) AS (SELECT NEW.run_id UNION "
    "SELECT i.source_id FROM training_runinput i JOIN behind b ON i.run_id = b.id "
    "WHERE i.role = 'base' AND i.source_id IS NOT NULL) "
    "SELECT 1 FROM behind b JOIN training_trainingrun r ON r.id = b.id WHERE r.kind = 'grpo')"
)


class Lifted(Guard):
    """A guard that is there no more; backwards it is there again."""

    def database_forwards(self, app_label, schema_editor, *states):
        super().database_backwards(app_label, schema_editor, *states)

    def database_backwards(self, app_label, schema_editor, *states):
        super().database_forwards(app_label, schema_editor, *states)

    def describe(self):
        return f"Lift the guard {self.event} on {self.table}: {self.message}"


def replaced(guard, condition):
    same = (guard.name, guard.table, guard.event)
    return [
        Lifted(*same, guard.message, guard.condition),
        Guard(*same, guard.message, condition),
    ]


class Migration(migrations.Migration):
    dependencies = [("training", "0010_chains")]
    operations = [
        *replaced(GATE, f"NEW.kind = 'gate' AND NOT {PASSED_AND_READ}"),
        *replaced(BASELINE, f"NEW.kind = 'baseline' AND NOT ({NOT_REWARDED})"),
    ]
