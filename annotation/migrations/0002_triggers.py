"""What must not change once people worked on it, held by the database itself (V9, V13)."""

from django.db import migrations

from webapp.core.triggers import Guard, append_only, never_emptied

LEGAL_MOVES = [
    ("draft", "open"), ("draft", "closed"),
    ("open", "paused"), ("open", "closed"),
    ("paused", "open"), ("paused", "closed"),
    ("closed", "open"),
]
ITEM_COLUMNS = [
    "project_id", "public_id", "content_sha256", "prompt_id", "persona_version_id",
    "first_sha256", "second_sha256", "first_answer_id", "second_answer_id", "kind", "synthetic",
    "source", "shuffle_key",
]


def moves():
    legal = " OR ".join(f"(OLD.state = '{a}' AND NEW.state = '{b}')" for a, b in LEGAL_MOVES)
    return f"OLD.state <> NEW.state AND NOT ({legal})"


def changed(*columns):
    return " OR ".join(f"OLD.{c} IS DISTINCT FROM NEW.{c}" for c in columns)


class Migration(migrations.Migration):
    dependencies = [("annotation", "0001_initial"), ("catalog", "0003_importrun_key")]
    operations = [
        *append_only("annotation_guideline"),
        *append_only("annotation_label"),
        *append_only("annotation_decision"),
        *append_only("annotation_golditem"),
        Guard("annotation_project_moves", "annotation_project", "UPDATE",
              "illegal move of a project", moves()),
        Guard("annotation_project_seed", "annotation_project", "UPDATE",
              "the seed of a project never changes", changed("seed")),
        Guard("annotation_item_fixed", "annotation_item", "UPDATE",
              "the content of an item never changes", changed(*ITEM_COLUMNS)),
        never_emptied("annotation_item"),
        Guard("annotation_itemtext_no_update", "annotation_itemtext", "UPDATE",
              "the texts of an item never change"),
        # Taken out and put back in, a text could be swapped under the labels.
        Guard("annotation_itemtext_no_return", "annotation_itemtext", "INSERT",
              "the texts of an item that was given out cannot be put back",
              "EXISTS (SELECT 1 FROM annotation_lease l WHERE l.item_id = NEW.item_id)"),
        Guard("annotation_lease_fixed", "annotation_lease", "UPDATE",
              "whose lease it is and which side stood where never changes",
              changed("item_id", "member_id", "repeat", "token", "first_left")),
        Guard("annotation_lease_kept", "annotation_lease", "DELETE",
              "a lease that was shown is kept",
              "OLD.shown_at IS NOT NULL OR OLD.head_id IS NOT NULL"),
        never_emptied("annotation_lease"),
    ]
