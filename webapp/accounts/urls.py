from django.urls import path

from webapp.accounts import views
from webapp.core.views import theme

app_name = "accounts"
urlpatterns = [
    path("invitations/", views.invitations, name="invitations"),
    path("invitations/<int:pk>/withdraw/", views.withdraw, name="withdraw"),
    path("invitation/<str:token>/", views.accept, name="accept"),
    path("tokens/", views.tokens, name="tokens"),
    path("tokens/<str:key>/revoke/", views.revoke, name="revoke"),
    path("theme/", theme, name="theme"),
]
