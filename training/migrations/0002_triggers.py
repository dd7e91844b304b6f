"""What must not change once a dataset is frozen, held by the database itself (V10, V11, V14)."""

from django.db import migrations

from webapp.core.triggers import Guard, append_only, never_emptied

LEGAL_MOVES = [
    ("draft", "freezing"), ("draft", "discarded"),
    ("freezing", "draft"), ("freezing", "frozen"),
]
FROZEN_COLUMNS = [
    "name", "kind", "content_sha256", "rows", "code_version", "created_by_id", "created_at",
    "frozen_at",
]
FROZEN_JSON = ["filter", "split_sha256", "counts", "lineage"]


def moves():
    legal = " OR ".join(f"(OLD.state = '{a}' AND NEW.state = '{b}')" for a, b in LEGAL_MOVES)
    return f"OLD.state <> NEW.state AND NOT ({legal})"


def changed():
    plain = [f"OLD.{c} IS DISTINCT FROM NEW.{c}" for c in FROZEN_COLUMNS]
    json = [f"CAST(OLD.{c} AS text) <> CAST(NEW.{c} AS text)" for c in FROZEN_JSON]
    return " OR ".join(plain + json)


def frozen(row):
    return (
        f"EXISTS (SELECT 1 FROM training_dataset d WHERE d.id = {row}.dataset_id "
        "AND d.state = 'frozen')"
    )


class Migration(migrations.Migration):
    dependencies = [("training", "0001_initial"), ("catalog", "0004_importrun_kind")]
    operations = [
        Guard("training_dataset_moves", "training_dataset", "UPDATE",
              "illegal move of a dataset", moves()),
        Guard("training_dataset_frozen", "training_dataset", "UPDATE",
              "the dataset is frozen", f"OLD.state = 'frozen' AND ({changed()})"),
        Guard("training_dataset_kept", "training_dataset", "DELETE",
              "a frozen dataset is kept", "OLD.state = 'frozen'"),
        never_emptied("training_dataset"),
        Guard("training_datasetitem_frozen_insert", "training_datasetitem", "INSERT",
              "the dataset is frozen", frozen("NEW")),
        Guard("training_datasetitem_frozen_update", "training_datasetitem", "UPDATE",
              "the dataset is frozen", frozen("OLD")),
        Guard("training_datasetitem_frozen_delete", "training_datasetitem", "DELETE",
              "the dataset is frozen", frozen("OLD")),
        never_emptied("training_datasetitem"),
        Guard("training_rowtext_no_update", "training_rowtext", "UPDATE",
              "the text of a row never changes"),
        Guard("training_rowtext_no_return", "training_rowtext", "INSERT",
              "rows of a persona whose consent was withdrawn cannot be put back",
              "EXISTS (SELECT 1 FROM catalog_persona p WHERE p.id = NEW.persona_id "
              "AND p.withdrawn_at IS NOT NULL)"),
        *append_only("training_splitclaim"),
        *append_only("training_baselineevaluation"),
    ]
