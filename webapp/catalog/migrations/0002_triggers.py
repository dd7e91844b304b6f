from django.db import migrations

from webapp.core.triggers import Guard, append_only, never_emptied


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial")]
    operations = [
        *append_only("catalog_personaversion"),
        *append_only("catalog_answer"),
        *append_only("catalog_exposure"),
        # A text may be erased (consent withdrawn), never changed.
        Guard("catalog_answertext_no_update", "catalog_answertext", "UPDATE",
              "the text of an answer never changes"),
        Guard("catalog_personatext_no_update", "catalog_personatext", "UPDATE",
              "a persona summary never changes; write a new version"),
        Guard("catalog_prompt_fixed", "catalog_prompt", "UPDATE",
              "the text of a prompt never changes",
              "OLD.text_hash <> NEW.text_hash OR "
              "CAST(OLD.messages AS text) <> CAST(NEW.messages AS text)"),
        # Taken out and put back in, a text could be swapped: what was sealed comes back never.
        Guard("catalog_answertext_no_return", "catalog_answertext", "INSERT",
              "the text of a sealed answer cannot be put back",
              "EXISTS (SELECT 1 FROM catalog_seal s WHERE s.answer_id = NEW.answer_id)"),
        never_emptied("catalog_answertext"),
        never_emptied("catalog_seal"),
        Guard("catalog_prompt_holdout", "catalog_prompt", "UPDATE",
              "a holdout prompt stays holdout",
              "OLD.split = 'holdout' AND NEW.split <> 'holdout'"),
        Guard("catalog_persona_holdout", "catalog_persona", "UPDATE",
              "a holdout persona stays holdout",
              "OLD.split = 'holdout' AND NEW.split <> 'holdout'"),
        Guard("catalog_seal_fixed", "catalog_seal", "UPDATE",
              "a seal can only be released",
              "OLD.answer_id <> NEW.answer_id OR OLD.holder <> NEW.holder "
              "OR OLD.released_at IS NOT NULL"),
        Guard("catalog_seal_kept", "catalog_seal", "DELETE",
              "a released seal is kept", "OLD.released_at IS NOT NULL"),
        Guard("catalog_contestant_frozen", "catalog_contestant", "UPDATE",
              "a contestant with answers is frozen",
              "(OLD.name <> NEW.name OR OLD.version <> NEW.version OR OLD.kind <> NEW.kind "
              "OR OLD.system_prompt <> NEW.system_prompt) AND EXISTS "
              "(SELECT 1 FROM catalog_answer a WHERE a.contestant_id = OLD.id)"),
    ]
