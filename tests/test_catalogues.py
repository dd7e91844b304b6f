"""Every string has its Chinese translation, and the catalogue compiles without gettext's tools."""

from __future__ import annotations

from django.utils import translation

from tools import messages


def test_no_string_lacks_its_translation() -> None:
    assert messages.problems() == []


def test_translations_are_read_from_the_compiled_catalogue() -> None:
    messages.compile_()
    with translation.override("zh-hans"):
        assert translation.gettext("Compose a round") != "Compose a round"
