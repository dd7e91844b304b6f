"""Message catalogues without gettext's tools: extract, compile and check them with Babel.

python tools/messages.py extract    add new strings to locale/*/LC_MESSAGES/django.po
python tools/messages.py compile    write the .mo files that Django reads
python tools/messages.py check      fail when a string lacks its translation
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_python
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("webapp", "annotation", "arena", "training", "workers")
LOCALES = ("zh_Hans",)
KEYWORDS: dict[str, tuple[int, ...] | None] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
}
Message = str | tuple[str, ...]


def python_messages() -> Iterator[tuple[Message, str, int]]:
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            with path.open("rb") as source:
                yield from _messages(source, path)


def template_messages() -> Iterator[tuple[Message, str, int]]:
    """Django turns a template into something like Python; leading blanks would confuse Babel."""
    for path in sorted((ROOT / "templates").rglob("*.html")):
        text = templatize(path.read_text("utf-8"), origin=str(path))
        lines = "\n".join(line.lstrip() for line in text.splitlines()) + "\n"
        yield from _messages(io.BytesIO(lines.encode()), path)


def _messages(source: io.BufferedIOBase, path: Path) -> Iterator[tuple[Message, str, int]]:
    name = str(path.relative_to(ROOT))
    found = extract_python(source, KEYWORDS, (), {"encoding": "utf-8"})  # type: ignore[arg-type]
    for line, function, message, _comments in found:
        if message is None:
            continue  # a variable: its text was marked where it stands
        texts = [str(text) for text in ([message] if isinstance(message, str) else message) if text]
        if not texts:
            continue
        plural = str(function).startswith("ngettext")
        yield ((texts[0], texts[1]) if plural else texts[0]), name, line


def template_catalog() -> Catalog:
    """All strings of the source."""
    catalog = Catalog(project="Palate", charset="utf-8")
    for message, name, line in [*python_messages(), *template_messages()]:
        flags = ["python-format"] if "%(" in str(message) else []
        catalog.add(message, locations=[(name, line)], flags=flags)
    return catalog


def po_path(locale: str) -> Path:
    return ROOT / "locale" / locale / "LC_MESSAGES" / "django.po"


def read_catalog(locale: str) -> Catalog:
    path = po_path(locale)
    if not path.exists():
        return Catalog(locale=locale, project="Palate", charset="utf-8")
    with path.open("rb") as source:
        return read_po(source, locale=locale)


def extract() -> None:
    template = template_catalog()
    for locale in LOCALES:
        catalog = read_catalog(locale)
        catalog.update(template, no_fuzzy_matching=True)
        catalog.obsolete.clear()
        catalog.fuzzy = False
        catalog.header_comment = "# Simplified Chinese for Palate."
        for message in catalog:
            message.locations = sorted({(name, 0) for name, _line in message.locations})
        path = po_path(locale)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as target:
            write_po(target, catalog, width=100, sort_output=True, include_lineno=False)


def compile_() -> None:
    for locale in LOCALES:
        with po_path(locale).with_suffix(".mo").open("wb") as target:
            write_mo(target, read_catalog(locale))


def problems() -> list[str]:
    """What keeps a catalogue from being complete."""
    found = []
    template = template_catalog()
    for locale in LOCALES:
        catalog = read_catalog(locale)
        for message in template:
            if not message.id:
                continue
            known = catalog.get(message.id)
            text = known.string if known else ""
            if known is None or not text or (isinstance(text, tuple) and not all(text)):
                found.append(
                    f"{locale}: not translated: {message.id!r} ({message.locations[0][0]})"
                )
            elif known.fuzzy:
                found.append(f"{locale}: fuzzy: {message.id!r}")
            else:
                found += [f"{locale}: {error}: {message.id!r}" for error in known.check(catalog)]
    return found


def check() -> int:
    found = problems()
    for line in found:
        print(line)
    print(f"{len(found)} problems in the catalogues" if found else "catalogues are complete")
    return 1 if found else 0


def main(arguments: list[str]) -> int:
    commands = {"extract": extract, "compile": compile_, "check": check}
    if len(arguments) != 1 or arguments[0] not in commands:
        print(__doc__)
        return 2
    return commands[arguments[0]]() or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
