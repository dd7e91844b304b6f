import django.db.models.deletion
from django.db import migrations, models

from webapp.core.triggers import Guard, append_only


class Migration(migrations.Migration):
    dependencies = [("catalog", "0004_importrun_kind")]
    operations = [
        migrations.CreateModel(
            name="AnswerCost",
            fields=[
                ("answer", models.OneToOneField(
                    on_delete=django.db.models.deletion.PROTECT, primary_key=True,
                    related_name="cost", serialize=False, to="catalog.answer")),
                ("prompt_tokens", models.PositiveIntegerField(null=True)),
                ("completion_tokens", models.PositiveIntegerField(null=True)),
                ("milliseconds", models.PositiveIntegerField()),
                ("tries", models.PositiveIntegerField(default=1)),
            ],
        ),
        *append_only("catalog_answercost"),
        Guard("catalog_contestant_settings_frozen", "catalog_contestant", "UPDATE",
              "a contestant with answers is frozen",
              "(OLD.uses_persona <> NEW.uses_persona "
              "OR CAST(OLD.sampling AS text) <> CAST(NEW.sampling AS text) "
              "OR CAST(OLD.endpoint AS text) <> CAST(NEW.endpoint AS text)) AND EXISTS "
              "(SELECT 1 FROM catalog_answer a WHERE a.contestant_id = OLD.id)"),
    ]
