import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    """A column that SQLite adds in place, and a default that is none of the database's business:
    so the table is not rebuilt and keeps its guards."""

    dependencies = [("annotation", "0003_gate_and_ready")]

    operations = [
        migrations.AddField(
            model_name="label",
            name="imported",
            field=models.JSONField(null=True),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="label",
                    name="at",
                    field=models.DateTimeField(default=django.utils.timezone.now),
                ),
            ],
        ),
    ]
