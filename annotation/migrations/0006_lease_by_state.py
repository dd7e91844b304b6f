"""The leases of a member are found by member and state: an index on the member alone misleads SQLite.

With it, SQLite read all leases that somebody ever had to find the two that she holds. The column
itself stays as it is, so nothing is rebuilt and no guard is lost.
"""

import django.db.models.deletion
from django.db import migrations, models

NAME = "annotation_lease_member_id_a29d8d67"


class Migration(migrations.Migration):
    dependencies = [("annotation", "0005_webhooks")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f'DROP INDEX IF EXISTS "{NAME}"',
                    f'CREATE INDEX "{NAME}" ON "annotation_lease" ("member_id")',
                )
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="lease",
                    name="member",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="leases",
                        to="annotation.member",
                    ),
                )
            ],
        )
    ]
