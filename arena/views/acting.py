"""Doing one thing to a round and going back to its page with the result in words."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from arena.models import Round
from webapp.core.errors import PalateError


def act(request: HttpRequest, pk: int, do: Any, done: Any) -> HttpResponse:
    """`do(round)`; `done` is the sentence, or makes it of the round."""
    round_ = get_object_or_404(Round, pk=pk)
    try:
        do(round_)
    except PalateError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, done(round_) if callable(done) else done)
    return redirect("arena:round_detail", pk=pk)
