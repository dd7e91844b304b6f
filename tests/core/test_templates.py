"""What holds for every template: it compiles, and the page policy finds nothing inline in it."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.template.loader import get_template, render_to_string

ROOT = Path(settings.BASE_DIR)
TEMPLATES = sorted(p.relative_to(ROOT / "templates") for p in (ROOT / "templates").rglob("*.html"))
BALLOT = (ROOT / "templates/components/ballot.html").read_text()
SCRIPT = (ROOT / "static/js/vote.js").read_text()


@pytest.mark.parametrize("name", TEMPLATES, ids=str)
def test_template_compiles_and_holds_nothing_inline(name: Path) -> None:
    get_template(str(name))
    source = (ROOT / "templates" / name).read_text()
    assert not re.search(r"\sstyle\s*=|\son[a-z]+\s*=\s*[\"']|<style|javascript:", source)
    assert not re.search(r"<script(?![^>]*\bsrc=)", source)
    shown = source[source.find("{% block") :] if "{% extends" in source else source
    assert not re.search(r"\{#(?:(?!#\}).)*$", shown, flags=re.MULTILINE), "{# #} is for one line"


@pytest.mark.parametrize(
    "name", [n for n in TEMPLATES if re.fullmatch(r"\d{3}.*", n.name)], ids=str
)
def test_error_pages_need_no_context(name: Path) -> None:
    page = render_to_string(str(name))
    assert "<h1>" in page
    assert 'lang="en"' in page


@pytest.mark.parametrize("child", ["arena/_vote.html", "annotation/_label.html"])
def test_every_text_of_the_voting_script_is_on_its_pages(child: str) -> None:
    used = set(re.findall(r'text\("([a-z-]+)"\)', SCRIPT)) | {"soon", "expired", "left"}
    source = (ROOT / "templates" / child).read_text()
    if "data-flag" not in source:
        used = {name for name in used if not name.startswith("flag")}
    assert used <= set(re.findall(r"data-t-([a-z-]+)=", BALLOT + source))


def test_the_two_sides_of_a_comparison_are_alike() -> None:
    pair = SimpleNamespace(left_html="same", right_html="same", lang="zh")
    page = render_to_string("components/comparison.html", {"pair": pair})
    left, right = re.findall(r"<section.*?</section>", page, flags=re.DOTALL)
    neutral = right.replace("right", "left").replace("answer-b", "answer-a").replace(">B<", ">A<")
    assert neutral == left


def test_verdict_rows_keep_order_choice_and_error() -> None:
    context = {
        "axes": [
            {"name": "personalization", "legend": "Fits?"},
            {"name": "quality", "legend": "?"},
        ],
        "draft": {"quality": "tie"},
        "errors": {"personalization": ["Choose one."]},
    }
    page = render_to_string("components/verdict_rows.html", context)
    assert page.index('id="verdict-personalization"') < page.index('id="verdict-quality"')
    assert re.findall(r'value="(\w+)" checked', page) == ["tie"]
    assert "Choose one." in page
    assert page.count('type="radio"') == 8


def test_progress_asks_again_only_while_there_is_something_to_ask() -> None:
    context = {"label": "Importing", "value": 1, "max": 4, "id": "run"}
    running = render_to_string("components/progress.html", {**context, "poll_url": "/p/"})
    assert 'hx-get="/p/"' in running
    assert "hx-" not in render_to_string("components/progress.html", context)


def test_the_voting_page_is_light() -> None:
    sheets = (ROOT / "static/css/palate.css").stat().st_size
    assert sheets + len(SCRIPT.encode()) < 64_000, (
        "uncompressed; htmx adds 51 kB, gzip divides by 4"
    )
