"""What must not change after opening, held by the database itself (V5, V6, V9)."""

from django.db import migrations

from webapp.core.triggers import Guard, append_only, never_emptied

SEALED = "('open', 'closed', 'unsealed')"
LEGAL_MOVES = [
    ("draft", "screening"), ("draft", "cancelled"),
    ("screening", "draft"), ("screening", "open"), ("screening", "cancelled"),
    ("open", "closed"), ("open", "cancelled"),
    ("closed", "unsealed"),
]
FROZEN_COLUMNS = [
    "name", "simulated", "axes", "weights", "tie_model", "drop_both_bad", "screening_policy",
    "exclusions", "planned_votes", "votes_per_battle", "stop_rule", "closes_at",
    "stratum_features", "minimum_strata", "minimum_per_stratum", "holdout_percent",
    "lease_minutes", "anchor_id", "seed", "salt", "protocol", "merkle_root", "commitment",
    "opened_at",
]


def sealed(round_id):
    return f"EXISTS (SELECT 1 FROM arena_round r WHERE r.id = {round_id} AND r.opened_at IS NOT NULL)"


def moves():
    legal = " OR ".join(f"(OLD.state = '{a}' AND NEW.state = '{b}')" for a, b in LEGAL_MOVES)
    return f"OLD.state <> NEW.state AND NOT ({legal})"


def frozen_round():
    changed = " OR ".join(f"OLD.{c} IS DISTINCT FROM NEW.{c}" for c in FROZEN_COLUMNS)
    return f"OLD.opened_at IS NOT NULL AND ({changed})"


def part_of_round(table, round_of):
    """Rows of a sealed round can be neither added nor removed nor changed."""
    message = "the round is sealed"
    return [
        Guard(f"{table}_sealed_insert", table, "INSERT", message, sealed(round_of("NEW"))),
        Guard(f"{table}_sealed_delete", table, "DELETE", message, sealed(round_of("OLD"))),
        Guard(f"{table}_sealed_update", table, "UPDATE", message, sealed(round_of("OLD"))),
        never_emptied(table),
    ]


def direct(row):
    return f"{row}.round_id"


def through_context(row):
    return f"(SELECT c.round_id FROM arena_context c WHERE c.id = {row}.context_id)"


class Migration(migrations.Migration):
    dependencies = [("arena", "0001_initial"), ("catalog", "0002_triggers")]
    operations = [
        Guard("arena_round_moves", "arena_round", "UPDATE", "illegal move of a round", moves()),
        Guard("arena_round_frozen", "arena_round", "UPDATE", "the round is sealed", frozen_round()),
        Guard("arena_round_digest", "arena_round", "UPDATE", "the votes of the round are counted",
              "OLD.closed_at IS NOT NULL AND (OLD.vote_digest <> NEW.vote_digest OR "
              "OLD.closed_at IS DISTINCT FROM NEW.closed_at)"),
        Guard("arena_round_unsealing", "arena_round", "UPDATE",
              "unsealing takes consent and ratings",
              "OLD.state <> 'unsealed' AND NEW.state = 'unsealed' AND ("
              "NOT EXISTS (SELECT 1 FROM arena_unsealapproval a WHERE a.round_id = OLD.id) OR "
              "NOT EXISTS (SELECT 1 FROM arena_ratingsnapshot s WHERE s.round_id = OLD.id))"),
        never_emptied("arena_round"),
        Guard("arena_round_kept", "arena_round", "DELETE", "a round that was opened is kept",
              "OLD.opened_at IS NOT NULL"),
        *part_of_round("arena_roundcontestant", direct),
        *part_of_round("arena_roundrater", direct),
        *part_of_round("arena_battle", direct),
        *part_of_round("arena_entry", through_context),
        Guard("arena_context_sealed_insert", "arena_context", "INSERT", "the round is sealed",
              sealed("NEW.round_id")),
        Guard("arena_context_sealed_delete", "arena_context", "DELETE", "the round is sealed",
              sealed("OLD.round_id")),
        Guard("arena_context_sealed_update", "arena_context", "UPDATE", "the round is sealed",
              f"{sealed('OLD.round_id')} AND (OLD.persona_version_id IS DISTINCT FROM "
              "NEW.persona_version_id OR OLD.prompt_id <> NEW.prompt_id OR OLD.stratum <> "
              "NEW.stratum OR OLD.holdout <> NEW.holdout OR OLD.round_id <> NEW.round_id)"),
        Guard("arena_slot_sealed_insert", "arena_slot", "INSERT", "the round is sealed",
              sealed("NEW.round_id")),
        Guard("arena_slot_sealed_delete", "arena_slot", "DELETE", "the round is sealed",
              sealed("OLD.round_id")),
        Guard("arena_slot_sealed_update", "arena_slot", "UPDATE", "the round is sealed",
              f"{sealed('OLD.round_id')} AND (OLD.x_id <> NEW.x_id OR OLD.y_id <> NEW.y_id OR "
              "OLD.context_id <> NEW.context_id OR OLD.target <> NEW.target OR "
              "OLD.round_id <> NEW.round_id)"),
        Guard("arena_vote_closed", "arena_vote", "INSERT", "the round takes no votes",
              "NOT EXISTS (SELECT 1 FROM arena_battle b JOIN arena_round r ON r.id = b.round_id "
              "WHERE b.id = NEW.battle_id AND r.state = 'open')"),
        # What was counted stays what it was.
        Guard("arena_assignment_counted", "arena_assignment", "UPDATE",
              "the votes of the round are counted",
              "((OLD.state <> NEW.state AND (OLD.state = 'voted' OR NEW.state = 'voted')) OR "
              "OLD.head_id IS DISTINCT FROM NEW.head_id OR "
              "OLD.rater_id <> NEW.rater_id OR OLD.battle_id <> NEW.battle_id) AND EXISTS "
              "(SELECT 1 FROM arena_round r WHERE r.id = OLD.round_id AND r.closed_at IS NOT NULL)"),
        Guard("arena_assignment_kept", "arena_assignment", "DELETE",
              "the votes of the round are counted",
              "OLD.state = 'voted' AND EXISTS (SELECT 1 FROM arena_round r "
              "WHERE r.id = OLD.round_id AND r.closed_at IS NOT NULL)"),
        # The summary that raters were shown can be erased, never put back.
        Guard("catalog_personatext_no_return", "catalog_personatext", "INSERT",
              "the summary of a sealed context cannot be put back",
              "EXISTS (SELECT 1 FROM arena_context c WHERE c.persona_version_id = NEW.version_id)"),
        *append_only("arena_vote"),
        *append_only("arena_unsealapproval"),
        *append_only("arena_ratingsnapshot"),
        *append_only("arena_rating"),
    ]
