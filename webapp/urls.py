"""All addresses of the site."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.i18n import set_language
from drf_spectacular.views import SpectacularAPIView

from webapp.accounts.views import home
from webapp.core.views import health

urlpatterns = [
    path("", home, name="home"),
    path("healthz", health, name="health"),
    path("admin/", admin.site.urls),
    path("i18n/setlang/", login_not_required(set_language), name="set_language"),
    path("accounts/", include("webapp.accounts.urls")),
    path("audit/", include("webapp.core.urls")),
    path("catalog/", include("webapp.catalog.urls")),
    path("annotation/", include("annotation.urls")),
    path("training/", include("training.urls")),
    path("", include("arena.urls")),
    path("api/v1/", include("arena.api_urls")),
    path("api/v1/annotation/", include("annotation.api_urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
]
