"""A contestant of kind checkpoint needs a promotion, or is marked as a baseline (V20)."""

from django.db import migrations

from webapp.core.triggers import Guard

UNFOUNDED = (
    "NEW.kind = 'checkpoint' AND NOT EXISTS (SELECT 1 FROM training_promotion p "
    "WHERE p.name = NEW.name AND p.version = NEW.version) "
    "AND CAST(NEW.provenance AS text) NOT LIKE '%\"baseline\": true%'"
)


class Migration(migrations.Migration):
    dependencies = [("training", "0007_gate_triggers"), ("catalog", "0005_answer_cost")]
    operations = [
        Guard(f"catalog_contestant_promoted_{event.lower()}", "catalog_contestant", event,
              "a trained model becomes a contestant by a promotion", UNFOUNDED)
        for event in ("INSERT", "UPDATE")
    ]
