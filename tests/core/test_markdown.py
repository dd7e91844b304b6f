"""Rendering of hostile and honest Markdown."""

import re
import time
from html.parser import HTMLParser

import pytest
from django.utils.safestring import SafeString
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.core.formulas import to_mathml
from webapp.core.markdown import MAX_CHARS, render, render_plain

# Nothing of this may become markup; all of it stays readable.
PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    '"url":"https://></a><img src=# onerror=alert(1) />"',
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<style>*{display:none}</style>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<div style='position:fixed'>over</div>",
    "<form action=//evil.example><input name=x>",
    "<!-- <img src=x onerror=alert(1)> -->",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<b onmouseover=alert(1)>bold</b>",
    "<details open ontoggle=alert(1)>",
    r"$\text{<img src=x onerror=alert(1)>}$",
    r"$$\href{javascript:alert(1)}{x}$$",
    r"\[ \style{background:url(//evil.example)}{x} \]",
    "```html\n<script>alert(1)</script>\n```",
    '```"><img src=x onerror=alert(1)>\ncode\n```',
    "`<img src=x onerror=alert(1)>`",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox)",
    "[x](java&#10;script:alert(1))",
    '[x](https://a.example "><img src=x onerror=alert(1)>")',
    "![x](javascript:alert(1))",
    '![" onerror=alert(1) x="](https://a.example/i.png)',
    "<javascript:alert(1)>",
    '<https://a.example/"onmouseover=alert(1)>',
    "| <img src=x onerror=alert(1)> |\n|---|\n| <script>x</script> |",
    "# <img src=x onerror=alert(1)>",
]
_TAGS = (
    "p br hr h3 h4 h5 h6 blockquote ul ol li em strong s code pre span div table thead tbody tr th "
    "td math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom "
    "menclose msub msup msubsup munder mover munderover mtable mtr mtd"
)
TAGS = set(_TAGS.split())
ATTRIBUTES = re.compile(
    r"class|dir|tabindex|start|display|accent|stretchy|fence|form|width|height|depth|linethickness|"
    r"lspace|rspace|mathvariant|maxsize|minsize|movablelimits|notation|displaystyle|scriptlevel|"
    r"(column|row)(align|lines|spacing|span)|separator|symmetric|largeop|frame|voffset|accentunder"
)


class Reader(HTMLParser):
    """Collects the tags, attributes and text of a fragment."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_harmless(markup: str) -> Reader:
    page = Reader(markup)
    assert page.tags <= TAGS
    assert all(ATTRIBUTES.fullmatch(name) for name in page.attributes)
    return page


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payloads_stay_text(payload: str) -> None:
    page = assert_harmless(render(payload))
    for word in re.findall(r"alert|evil|msgbox|display:none", payload):
        assert word in page.text or payload.startswith('```"'), "the text was destroyed"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payloads_stay_text_inside_other_markup(payload: str) -> None:
    for frame in (
        "- {}",
        "> {}",
        "**{}**",
        "a | b\n-|-\n{} | x",
        "[{}](https://a.example)",
        "${}$",
    ):
        assert_harmless(render(frame.format(payload)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>bold</b>", "<b>bold</b>"),
        ("Use <T> and List<int>", "Use <T> and List<int>"),
        ("if a < b && c > d", "if a < b && c > d"),
        ("A. one\nB. two", "A. one\nB. two"),
        ("&lt;tag&gt; &amp; &copy;", "<tag> & ©"),
        ("price $5 and $6", "price $5 and $6"),
        ("$HOME/$PATH", "$HOME/$PATH"),
        ("costs $5, she said, or 6$.", "costs $5, she said, or 6$."),
        (r"\[not a link\](url)", "[not a link](url)"),
        (r"\$5", "$5"),
        ("~~gone~~", "gone"),
        ("你好，**世界**！", "你好，世界！"),
        ("שלום **עולם**", "שלום עולם"),
        ("مرحبا بالعالم", "مرحبا بالعالم"),
        ("👩‍🔬 e\u0301", "👩‍🔬 e\u0301"),
        ("a\x00b", "a\ufffdb"),
        ("\ud83d lone", "\ufffd lone"),
        ("", ""),
    ],
)
def test_visible_text(text: str, shown: str) -> None:
    assert Reader(render(text)).text.strip() == shown


def test_line_breaks_are_kept() -> None:
    assert render("A. one\nB. two") == "<p>A. one<br>\nB. two</p>\n"


def test_links_do_not_lead_anywhere_but_show_their_address() -> None:
    markup = render("[the manual](https://docs.example/a?b=1&c=2) <https://auto.example>")
    page = assert_harmless(markup)
    assert "a" not in page.tags
    assert page.text.strip() == ("the manual (https://docs.example/a?b=1&c=2) https://auto.example")


def test_pictures_are_not_fetched() -> None:
    page = assert_harmless(render("![a **cat**](https://spy.example/1.png)"))
    assert "img" not in page.tags
    assert page.text.strip() == "a cat (https://spy.example/1.png)"


def test_bare_addresses_stay_text() -> None:
    assert render("see https://docs.example") == "<p>see https://docs.example</p>\n"


@pytest.mark.parametrize(
    "text",
    ["$x^2$", r"\(x^2\)", "$$x^2$$", r"\[x^2\]", "$$\nx^2\n$$", "\\[\nx^2\n\\]", "价格$x^2$元"],
)
def test_formulas_become_mathml(text: str) -> None:
    page = assert_harmless(render(text))
    assert {"math", "msup"} <= page.tags


def test_display_formula_interrupts_a_paragraph_and_keeps_its_lines() -> None:
    page = assert_harmless(render("so\n\\[\na = b\n- c\n\\]\nand on"))
    assert "li" not in page.tags
    assert page.text.split() == ["so", "a=b−c", "and", "on"]


def test_less_than_in_a_formula_stays() -> None:
    assert "a<b" in Reader(render("$a<b^2$")).text


@pytest.mark.parametrize("broken", [r"\frac{1", r"\begin{matrix} a & b", r"\left( x", "}{", "^"])
def test_a_formula_that_does_not_convert_stays_readable(broken: str) -> None:
    page = assert_harmless(render(f"before ${broken}$ after"))
    assert "before" in page.text
    assert "after" in page.text


def test_unconvertible_formula_is_shown_literally() -> None:
    assert to_mathml("{" * 400, display=False) is None
    text = "$" + "{" * 400 + "$"
    assert "{{{" in Reader(render(text)).text


def test_headings_leave_no_gap_below_the_page() -> None:
    markup = render("### Deep first\n# Top\n##### Deeper")
    assert re.findall(r"<(h\d) class=\"(md-h\d)\"", markup) == [
        ("h3", "md-h3"),
        ("h3", "md-h1"),
        ("h4", "md-h5"),
    ] or re.findall(r"<h(\d)", markup) == ["3", "3", "4"]


def test_tables_align_by_class() -> None:
    markup = render("| a | b |\n|:-:|--:|\n| 1 | 2 |")
    assert '<th class="ta-center">' in markup
    assert '<td class="ta-right">' in markup
    assert "style" not in markup


def test_code_is_highlighted_with_classes_and_keeps_its_text() -> None:
    code = "def f(x):\n    return '<b>' + x  # 注释\n\n\n"
    markup = render(f"```python\n{code}```")
    assert '<span class="k">def</span>' in markup
    assert Reader(markup).text.rstrip("\n") == code.rstrip("\n")
    assert "style" not in markup


@pytest.mark.parametrize("language", ["", "nonsense", "brainfuck", "<script>", "py thon"])
def test_unknown_languages_are_shown_plainly(language: str) -> None:
    page = assert_harmless(render(f"```{language}\nx < y\n```"))
    assert "x < y" in page.text


def test_numbered_list_keeps_its_start() -> None:
    assert '<ol start="7">' in render("7. seven\n8. eight")


def test_the_same_text_gives_the_same_markup() -> None:
    text = "# T\n\n$x$ [a](https://b.example)\n\n```py\n1\n```"
    first = render(text)
    render.cache_clear()
    assert render(text) == first


def test_result_is_safe_for_templates() -> None:
    assert isinstance(render("x"), SafeString)
    assert isinstance(render_plain("<x>"), SafeString)
    assert render_plain("<x>\n  y") == '<p class="plain">&lt;x&gt;\n  y</p>'


N = 20_000
HEAVY = {
    "brackets": "[" * 10_000,
    "closing": "]" * N,
    "pictures": "![" * N,
    "links": "[](" * N,
    "stars": "*a " * N,
    "mixed": "**a_" * N,
    "ticks": "".join("`" * i + " " for i in range(1, 300)),
    "quotes": ">" * N,
    "quoted lines": ("> " * 30 + "x\n") * 800,
    "dashes": "- " * N,
    "nested list": "\n".join(" " * (2 * i) + "- x" for i in range(300)),
    "dollars": "$a" * N,
    "display": "$$a\n" * N,
    "escaped brackets": "\\[a\n" * N,
    "parentheses": "\\(" * N,
    "formulas": "$x_1$ " * 10_000,
    "escaped dollars": "$a\\$\\$\\$" * 8_000,
    "angle": "<a " * N,
    "wide table": "|a" * 1000 + "|\n" + "|-" * 1000 + "|\n" + "|x\n" * 10_000,
    "long table": "|a|b|\n|-|-|\n" + "|x|y|\n" * 10_000,
    "code": "```python\n" + '\'"""(' * 8_000 + "\n```",
    "regex": "```js\n" + "/(" * N + "\n```",
    "deep formula": "$" + "\\frac{" * 150 + "$",
    "lazy": "> a\n" + "b\n" * N,
    "definitions": "[a]: b\n" * 10_000,
    "200 kB": "lorem ipsum **dolor** sit `amet`\n" * 6_200,
    "中文": "中文" * 50_000,
}


@pytest.mark.parametrize("name", HEAVY)
def test_pathological_texts_cost_bounded_time(name: str) -> None:
    started = time.process_time()
    assert_harmless(render(HEAVY[name]))
    assert time.process_time() - started < 60  # what grows as a square takes far longer


BOMBS = {
    "css": '"\\', "typescript": "a.", "javascript": "'\\", "java": "\n\n", "c": "\n", "cpp": "\n",
    "objective-c": "\n\n", "make": "a", "csharp": "a\n", "go": '"\\', "kotlin": "/", "r": "`\\",
    "perl": "`\\", "matlab": "\n ",
}  # fmt: skip


@pytest.mark.parametrize("language", BOMBS)
@pytest.mark.parametrize("length", [900, 1_900, 3_900, 39_900])
def test_no_code_costs_much_to_highlight(language: str, length: int) -> None:
    """Measured: at most 0.3 s each, for every length; the bound leaves room for a busy machine."""
    bomb = BOMBS[language]
    code = (bomb * length)[:length]
    render.__wrapped__(f"```{language}\nx\n```")  # the lexer is loaded
    started = time.process_time()
    render.__wrapped__(f"```{language}\n{code}\n```\n" * 3)
    assert time.process_time() - started < 20


def test_code_beyond_the_budget_keeps_its_text_and_loses_its_colours() -> None:
    line = "int a = 1;\n"
    assert "<span" in render(f"```c\n{line * 100}```")
    page = render(f"```c\n{line * 400}```")
    assert "<span" not in page
    assert page.count("int a = 1;") == 400


def test_what_is_too_deep_for_the_parser_is_shown_as_it_is() -> None:
    text = "> " * 60 + "the end"
    assert render(text) == render_plain(text)


def test_what_is_too_long_is_shown_as_it_is() -> None:
    text = "**x** " * (MAX_CHARS // 6 + 1)
    assert render(text) == render_plain(text)


_PIECES = r"$ $$ \( \) \[ \] \frac{ } [ ]( ) ![ ` ``` > - 1. # | |-| * ** ~~ <b> &lt; \ x 中"
PIECES = st.sampled_from([*_PIECES.split(), " ", "\n", "\n\n"])


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)))
def test_never_raises_and_never_leaks_markup(text: str) -> None:
    assert_harmless(render(text))


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8", categories=["L", "N"]), min_size=1))
def test_words_survive(text: str) -> None:
    assert Reader(render(text)).text.strip() == text
