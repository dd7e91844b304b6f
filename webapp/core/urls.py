"""The audit log. `webapp.urls` puts the login in front; roles are checked in the view."""

from django.urls import path

from webapp.core.views import audit_log

app_name = "core"
urlpatterns = [path("", audit_log, name="audit")]
