from django.contrib.auth.views import LogoutView, PasswordChangeView
from django.urls import path

from webapp.accounts import views
from webapp.accounts.signing_in import SignIn
from webapp.core.views import theme

app_name = "accounts"
urlpatterns = [
    path("login/", SignIn.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("password/", PasswordChangeView.as_view(success_url="/"), name="password"),
    path("invitations/", views.invitations, name="invitations"),
    path("invitations/<int:pk>/withdraw/", views.withdraw, name="withdraw"),
    path("invitation/<str:token>/", views.accept, name="accept"),
    path("tokens/", views.tokens, name="tokens"),
    path("tokens/<str:key>/revoke/", views.revoke, name="revoke"),
    path("theme/", theme, name="theme"),
]
