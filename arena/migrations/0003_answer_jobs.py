import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from webapp.core.triggers import Guard

OPENED = (
    "EXISTS (SELECT 1 FROM arena_context c JOIN arena_round r ON r.id = c.round_id "
    "WHERE c.id = {row}.context_id AND r.opened_at IS NOT NULL)"
)


class Migration(migrations.Migration):

    dependencies = [
        ('arena', '0002_triggers'),
        ('catalog', '0005_answer_cost'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AnswerJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('running', 'being made'), ('done', 'finished'), ('cancelled', 'stopped')], default='running', max_length=16)),
                ('failure_limit', models.PositiveIntegerField(default=5)),
                ('total', models.PositiveIntegerField(default=0)),
                ('made', models.PositiveIntegerField(default=0)),
                ('failed', models.PositiveIntegerField(default=0)),
                ('pauses', models.JSONField(default=dict)),
                ('pace', models.FloatField(null=True)),
                ('resume_at', models.DateTimeField(null=True)),
                ('heartbeat_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('round', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='answer_job', to='arena.round')),
            ],
        ),
        migrations.CreateModel(
            name='WantedAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('draw', models.PositiveIntegerField(default=0)),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('made', 'made'), ('failed', 'failed')], default='waiting', max_length=8)),
                ('code', models.CharField(blank=True, max_length=32)),
                ('http_status', models.PositiveIntegerField(null=True)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('not_before', models.DateTimeField(null=True)),
                ('answer', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.answer')),
                ('contestant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.contestant')),
                ('context', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wanted', to='arena.context')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wanted', to='arena.answerjob')),
            ],
            options={
                'indexes': [models.Index(fields=['job', 'state', 'contestant'], name='wanted_left')],
                'constraints': [models.UniqueConstraint(fields=('context', 'contestant'), name='wanted_once'), models.CheckConstraint(condition=models.Q(models.Q(('answer__isnull', False), ('state', 'made')), models.Q(models.Q(('state', 'made'), _negated=True), ('answer__isnull', True)), _connector='OR'), name='wanted_made_has_answer'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'failed'), _negated=True), models.Q(('code', ''), _negated=True), _connector='OR'), name='wanted_failed_has_reason')],
            },
        ),
        *(
            Guard(f"arena_wantedanswer_sealed_{event.lower()}", "arena_wantedanswer", event,
                  "the round is sealed", OPENED.format(row=row))
            for event, row in (("INSERT", "NEW"), ("UPDATE", "OLD"), ("DELETE", "OLD"))
        ),
    ]
