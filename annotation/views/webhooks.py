"""The webhooks of a project, for its managers."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from annotation.forms.errors import point_at
from annotation.forms.webhooks import PasswordForm, WebhookForm
from annotation.models import Project, Webhook
from annotation.selectors import webhooks as select
from annotation.services import webhooks
from webapp.accounts.access import admin_only
from webapp.core.errors import InvalidInput, PalateError

PER_PAGE = 50


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def webhook_list(request: HttpRequest, pk: int) -> HttpResponse:
    """All webhooks of a project, and the form for another. Its secret is shown once."""
    project = get_object_or_404(Project, pk=pk)
    form = WebhookForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            hook = webhooks.create_webhook(actor=request.user, project=project, **form.cleaned_data)
        except PalateError as error:
            point_at(form, error)
        else:
            # Not a redirect: a secret has no place in a session or an address.
            return _hook_page(request, hook, secret=webhooks.secret_of(hook), new=True)
    context = {
        "project": project,
        "tab": "settings",
        "form": form,
        "rows": select.webhooks_of(project),
    }
    return render(request, "annotation/webhooks.html", context, status=422 if form.errors else 200)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def webhook(request: HttpRequest, pk: int, hook: str) -> HttpResponse:
    """One webhook: address, events, deliveries."""
    row = access_webhook(pk, hook)
    if request.method == "GET":
        return _hook_page(request, row)
    form = WebhookForm(request.POST)
    if form.is_valid():
        try:
            webhooks.change_webhook(actor=request.user, hook=row, **form.cleaned_data)
        except PalateError as error:
            point_at(form, error)
        else:
            messages.success(request, _("The webhook is saved."))
            return redirect("annotation:webhook", pk, hook)
    return _hook_page(request, row, form=form)


def access_webhook(pk: int, hook: str) -> Webhook:
    row = select.find_webhook(get_object_or_404(Project, pk=pk), hook)
    if row is None:
        raise Http404
    return row


def _hook_page(
    request: HttpRequest,
    hook: Webhook,
    *,
    form: WebhookForm | None = None,
    password_form: PasswordForm | None = None,
    secret: str = "",
    new: bool = False,
) -> HttpResponse:
    page = Paginator(select.deliveries_of(hook), PER_PAGE).get_page(request.GET.get("page"))
    bound = form or WebhookForm(initial={"url": hook.url, "events": hook.events})
    context = {
        "project": hook.project,
        "tab": "settings",
        "hook": hook,
        "off_reason": select.problem(hook.off_reason),
        "form": bound,
        "password_form": password_form or PasswordForm(),
        "secret": secret,
        "new": new,
        "page": page,
        "deliveries": [(row, select.problem(row.last_error)) for row in page.object_list],
    }
    failed = bound.errors or (password_form is not None and password_form.errors)
    return render(request, "annotation/webhook.html", context, status=422 if failed else 200)


@admin_only
@require_POST
def webhook_do(request: HttpRequest, pk: int, hook: str) -> HttpResponse:
    """Pause, go on, send a test, delete."""
    row = access_webhook(pk, hook)
    wanted = request.POST.get("do", "")
    if wanted in ("pause", "resume"):
        webhooks.set_active(actor=request.user, hook=row, active=wanted == "resume")
    elif wanted == "test":
        webhooks.send_test(actor=request.user, hook=row)
        messages.success(request, _("A test is on its way. Load this page again in a moment."))
    elif wanted == "delete":
        webhooks.delete_webhook(actor=request.user, hook=row)
        messages.success(request, _("The webhook is deleted."))
        return redirect("annotation:webhooks", pk)
    return redirect("annotation:webhook", pk, hook)


@admin_only
@never_cache
@sensitive_post_parameters("password")
@require_POST
def webhook_secret(request: HttpRequest, pk: int, hook: str) -> HttpResponse:
    """Show the secret, or make another one, to who gives his password again."""
    row = access_webhook(pk, hook)
    form = PasswordForm(request.POST)
    if not form.is_valid():
        return _hook_page(request, row, password_form=form)
    try:
        secret = webhooks.show_secret(
            actor=request.user,
            hook=row,
            password=form.cleaned_data["password"],
            rotate=request.POST.get("do") == "rotate",
        )
    except InvalidInput as error:
        point_at(form, error)
        return _hook_page(request, row, password_form=form)
    return _hook_page(request, row, secret=secret)


@admin_only
@require_POST
def redeliver(request: HttpRequest, pk: int, hook: str, delivery: str) -> HttpResponse:
    """Send a delivery again, under the same id."""
    row = get_object_or_404(access_webhook(pk, hook).deliveries, public_id=delivery)
    webhooks.redeliver(actor=request.user, delivery=row)
    messages.success(request, _("It is sent again. Load this page again in a moment."))
    return redirect("annotation:webhook", pk, hook)
