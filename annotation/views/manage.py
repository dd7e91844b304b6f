"""Projects for their managers: the list, settings, guidelines, targets, people, and moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.enums import MEMBER_MOVES, TRANSITIONS, MemberState, ProjectState
from annotation.forms.errors import point_at
from annotation.forms.projects import (
    CreateForm,
    GuidelineForm,
    MembersForm,
    ProjectForm,
    initial_from_project,
)
from annotation.models import Guideline, Member, Project
from annotation.selectors import projects as select
from annotation.selectors.gold import paused_by_gate
from annotation.services import projects
from annotation.services.setting_aside import set_labels_aside, take_labels_back
from webapp.accounts.access import admin_only
from webapp.core.errors import InvalidInput, PalateError
from webapp.core.http import safe_next, whole_number
from webapp.core.markdown import render as render_markdown
from webapp.core.worddiff import diff

TARGET_ROWS = 200  # strata in the table of targets


@admin_only
@never_cache
@require_GET
def project_list(request: HttpRequest) -> HttpResponse:
    """All projects, the newest first."""
    page = Paginator(select.projects(), 30).get_page(request.GET.get("page", "1"))
    context = {"page": page, "rows": select.overviews(list(page.object_list))}
    return render(request, "annotation/projects.html", context)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """A new project, a draft with the first version of its guidelines."""
    form = CreateForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        settings = form.settings()
        name, text = settings.pop("name"), settings.pop("guidelines").replace("\r\n", "\n")
        try:
            made = projects.create_project(
                actor=request.user, name=name, guidelines=text, settings=settings
            )
        except InvalidInput as error:
            point_at(form, error, price_cents="price")
        else:
            messages.success(request, _("The project is a draft. Add items and people next."))
            return redirect("annotation:settings", made.pk)
    status = 422 if form.is_bound else 200
    return render(request, "annotation/create.html", {"form": form}, status=status)


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest, pk: int) -> HttpResponse:
    """Everything that can be set, what it means, and what opening still lacks."""
    project = get_object_or_404(Project, pk=pk)
    form = ProjectForm(
        request.POST or None,
        labelled=projects.is_labelled(project),
        initial=initial_from_project(project),
    )
    if request.method == "POST" and form.is_valid():
        try:
            projects.change_project(actor=request.user, project=project, settings=form.settings())
        except PalateError as error:
            point_at(form, error, price_cents="price")
        else:
            messages.success(request, _("The settings are saved."))
            return redirect("annotation:settings", pk)
    context = {
        "project": project,
        "tab": "settings",
        "form": form,
        "ready": select.readiness(project),
        "moves": _moves(project),
        "strata": select.strata(project)[:TARGET_ROWS],
    }
    return render(request, "annotation/settings.html", context, status=422 if form.errors else 200)


def _moves(project: Project) -> set[str]:
    return {str(state) for state in TRANSITIONS[project.state]}


@admin_only
@require_POST
def targets(request: HttpRequest, pk: int) -> HttpResponse:
    """How many items of each stratum are wanted. An empty field: no target."""
    project = get_object_or_404(Project, pk=pk)
    wanted: dict[str, int] = {}
    for stratum, text in zip(
        request.POST.getlist("stratum"), request.POST.getlist("target"), strict=False
    ):
        value = whole_number(text.strip())
        if value is None and text.strip():
            messages.error(request, _("“%(text)s” is no whole number.") % {"text": text[:40]})
            return redirect("annotation:settings", pk)
        if value:
            wanted[stratum] = min(value, 10_000_000)
    return act(
        request,
        lambda: projects.change_project(
            actor=request.user, project=project, settings={"targets": wanted}
        ),
        _("The targets are saved."),
        "annotation:settings",
        pk,
    )


def act(
    request: HttpRequest, run: Callable[[], Any], done: str, to: str, *args: Any
) -> HttpResponse:
    """Do one thing and go back (`next`, or the page named) with the result in words."""
    try:
        run()
    except PalateError as error:
        messages.error(request, str(error))
    else:
        if done:
            messages.success(request, done)
    return redirect(safe_next(request, reverse(to, args=args)))


@admin_only
@require_POST
def move(request: HttpRequest, pk: int) -> HttpResponse:
    """Open, pause or close."""
    project = get_object_or_404(Project, pk=pk)
    to = request.POST.get("to", "")
    if to not in ProjectState.values:
        messages.error(request, _("There is no such state."))
        return redirect("annotation:settings", pk)
    done = {
        ProjectState.OPEN: _("The project is open: its members get items."),
        ProjectState.PAUSED: _("The project is paused: nobody gets new items."),
        ProjectState.CLOSED: _("The project is closed."),
    }
    return act(
        request,
        lambda: projects.move_project(
            actor=request.user, project=project, to=to, reason=request.POST.get("reason", "")[:300]
        ),
        done.get(ProjectState(to), ""),
        "annotation:settings",
        pk,
    )


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def guidelines(request: HttpRequest, pk: int) -> HttpResponse:
    """The versions of the guidelines, a new one with its preview, and what changed between two."""
    project = get_object_or_404(Project, pk=pk)
    versions = select.guideline_versions(project)
    newest = versions[0].text if versions else ""
    form = GuidelineForm(request.POST or None, initial={"text": newest})
    preview = None
    if request.method == "POST" and form.is_valid():
        text = form.cleaned_data["text"].replace("\r\n", "\n")
        if "preview" in request.POST:
            preview = render_markdown(text)
        else:
            try:
                projects.publish_guidelines(actor=request.user, project=project, text=text)
            except InvalidInput as error:
                point_at(form, error, guidelines="text")
            else:
                messages.success(request, _("The guidelines are published."))
                return redirect("annotation:guideline_versions", pk)
    context = {
        "project": project,
        "tab": "settings",
        "form": form,
        "versions": versions,
        "preview": preview,
        "comparison": _comparison(request, versions),
    }
    status = 422 if form.errors else 200
    return render(request, "annotation/guideline_versions.html", context, status=status)


def _comparison(request: HttpRequest, versions: list[Guideline]) -> dict[str, Any] | None:
    """Two versions side by side with their words marked; by default none."""
    by_n = {row.n: row for row in versions}
    chosen = (whole_number(request.GET.get(name)) or 0 for name in ("old", "new"))
    old, new = (by_n.get(n) for n in chosen)
    if old is None or new is None:
        return None
    left, right = diff(old.text, new.text)
    return {"old": old, "new": new, "left": left, "right": right}


@admin_only
@never_cache
@require_http_methods(["GET", "POST"])
def members(request: HttpRequest, pk: int) -> HttpResponse:
    """Who works in the project, who was paused and why, and whom to add."""
    project = get_object_or_404(Project, pk=pk)
    accounts = select.addable_accounts(project)
    form = MembersForm(request.POST or None, users=accounts)
    if request.method == "POST" and form.is_valid():
        return act(
            request,
            lambda: projects.add_members(
                actor=request.user,
                project=project,
                users=form.cleaned_data["users"],
                adjudicates=form.cleaned_data["adjudicates"],
            ),
            _("They are in the project."),
            "annotation:members",
            pk,
        )
    rows = select.member_rows(project)
    context = {
        "project": project,
        "tab": "settings",
        "form": form,
        "rows": [(row, sorted(MEMBER_MOVES[row.member.state])) for row in rows],
        "gated": paused_by_gate(project) if any(row.by_gate for row in rows) else [],
        "addable": accounts.exists(),
    }
    return render(request, "annotation/members.html", context, status=422 if form.errors else 200)


@admin_only
@require_POST
def member(request: HttpRequest, pk: int, member: int) -> HttpResponse:
    """Pause, resume, let go, (un)make an adjudicator, set labels aside or take them back."""
    row = get_object_or_404(Member.objects.select_related("project"), pk=member, project=pk)
    do = request.POST.get("do", "")

    def run() -> None:
        if do in ("adjudicates", "adjudicates_not"):
            projects.set_adjudicates(
                actor=request.user, member=row, adjudicates=do == "adjudicates"
            )
        elif do in MemberState.values:
            reason = request.POST.get("reason", "")
            projects.set_member_state(actor=request.user, member=row, state=do, reason=reason)
        elif do == "set_aside":
            reason = request.POST.get("reason", "")
            set_labels_aside(actor=request.user, member=row, reason=reason)
        elif do == "take_back":
            take_labels_back(actor=request.user, member=row)
        else:
            raise InvalidInput(_("There is nothing of that kind to do."), field="do")

    return act(request, run, _("It is noted."), "annotation:members", pk)
