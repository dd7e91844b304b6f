"""Markdown of unknown origin, rendered safely and alike for everybody.

`render` depends on the text alone: the same text gives the same markup on either side of a battle.
HTML in it stays visible as text, links do not lead anywhere, pictures are not fetched, and whatever
the parser leaves is filtered by an allow-list. A text that is too long, too deep or that breaks the
parser is shown as it is.
"""

import re
from collections.abc import Callable, MutableMapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML, RendererProtocol
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from webapp.core.formulas import formulas

MAX_CHARS = 100_000  # longer texts are shown as they are
MAX_NESTING = 40  # the parser drops what lies deeper, so such texts are shown as they are
# Characters of code highlighted in one text. The lexers backtrack: hostile code costs the square
# of its length, about 0.15 s for this much of it. Longer code is shown without colours.
CODE_BUDGET = 4_000
FIRST_HEADING = 3  # the page's own title and the sides' letters come before
_MARKS = re.compile(r"[\[\]`*_~<&!|]")
MAX_MARKS = 20_000  # characters with a meaning in Markdown


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Highlighting is regular expressions over hostile text: common languages only.
_LANGUAGES = _words(
    """
    bash c c++ cpp csharp css diff docker dockerfile go graphql haskell html ini java javascript
    js json jsx julia kotlin latex lua make matlab objective-c perl php powershell py python r
    rb ruby rust scala sh shell sql swift tex toml ts tsx typescript xml yaml yml
    """
)

# Lexers that backtrack much more than the others: a character counts so many times.
_DEAR = {
    **dict.fromkeys(("c", "c++", "cpp", "objective-c", "java", "make"), 2),
    "csharp": 4,
}

_MATH_TAGS = _words(
    """
    math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom menclose
    msub msup msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd
    """
)
_MATH_ATTRIBUTES = _words(
    """
    accent accentunder columnalign columnlines columnspacing columnspan depth displaystyle fence
    form frame height largeop linethickness lspace mathvariant maxsize minsize movablelimits
    notation rowalign rowlines rowspacing rowspan rspace scriptlevel separator stretchy
    symmetric voffset width
    """
)
_TEXT_TAGS = _words(
    """
    p br hr h3 h4 h5 h6 blockquote ul ol li em strong s code pre span div table thead tbody tr
    th td
    """
)
_ALIGNED = frozenset({"ta-center", "ta-right"})
_HEADING_CLASSES = frozenset(f"md-h{level}" for level in range(1, 7))

_CLEANER = nh3.Cleaner(
    tags=set(_TEXT_TAGS | _MATH_TAGS),
    clean_content_tags=set(),
    attributes={
        "ol": {"start"},
        "math": {"display"},
        **{tag: set(_MATH_ATTRIBUTES) for tag in _MATH_TAGS - {"math"}},
    },
    tag_attribute_values={
        "pre": {"dir": {"ltr"}, "tabindex": {"0"}},
        "div": {"tabindex": {"0"}},
    },
    allowed_classes={
        "span": set(STANDARD_TYPES.values()) - {""} | {"math", "display", "link", "url", "image"},
        "div": {"math", "display", "table-scroll"},
        "pre": {"hl"},
        "p": {"plain"},
        "th": set(_ALIGNED),
        "td": set(_ALIGNED),
        **{f"h{level}": set(_HEADING_CLASSES) for level in range(3, 7)},
    },
    url_schemes=set(),
    link_rel=None,
)


@lru_cache(maxsize=256)
def render(text: str) -> SafeString:
    """The text as sanitised HTML; never raises."""
    text = _well_formed(text)
    if len(text) > MAX_CHARS or len(_MARKS.findall(text)) > MAX_MARKS:
        return render_plain(text)
    try:
        env: dict[str, Any] = {}
        markup = _parser().render(text, env)
        if env.get("too_deep"):
            return render_plain(text)
        return mark_safe(_CLEANER.clean(markup))  # noqa: S308
    except Exception:  # a parser bug must not take the page away from the rater
        return render_plain(text)


def render_plain(text: str) -> SafeString:
    """The text as it is, line breaks kept."""
    return mark_safe(f'<p class="plain">{escape(_well_formed(text))}</p>')  # noqa: S308


def _well_formed(text: str) -> str:
    """Without NUL and lone surrogates, which no HTML page can hold."""
    encoded = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-16-le", "surrogatepass")
    return encoded.decode("utf-16-le", "replace")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    options = {"html": False, "breaks": True, "linkify": False, "maxNesting": MAX_NESTING}
    md = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    md.use(formulas)
    md.block.ruler.before("table", "depth", _note_depth)
    md.core.ruler.push("presentation", _present)
    rules: dict[str, Callable[..., str]] = {
        "fence": _code,
        "code_block": _code,
        "link_open": _link_open,
        "link_close": _link_close,
        "image": _image,
        "table_open": lambda *_: '<div class="table-scroll" tabindex="0"><table>\n',
        "table_close": lambda *_: "</table></div>\n",
    }
    for name, rule in rules.items():
        md.add_render_rule(name, rule)
    return md


def _note_depth(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Remember that the parser is about to drop what is nested still deeper."""
    if state.level >= MAX_NESTING - 3:
        state.env["too_deep"] = True
    return False


def _present(state: StateCore) -> None:
    """Headings without gaps below the page's own, column alignment as classes."""
    previous = FIRST_HEADING - 1
    for token in state.tokens:
        if token.type == "heading_open":
            wanted = int(token.tag[1])
            previous = min(wanted + FIRST_HEADING - 1, previous + 1, 6)
            token.attrSet("class", f"md-h{wanted}")
            token.tag = f"h{previous}"
        elif token.type == "heading_close":
            token.tag = f"h{previous}"
        elif token.type in ("th_open", "td_open"):
            align = str(token.attrs.pop("style", "")).removeprefix("text-align:")
            if f"ta-{align}" in _ALIGNED:
                token.attrSet("class", f"ta-{align}")


def _code(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    idx: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    token = tokens[idx]
    language = (token.info.split() or [""])[0].lower()
    cost = len(token.content) * _DEAR.get(language, 1)
    spent = env["code_spent"] = env.get("code_spent", 0) + cost
    markup = _highlighted(token.content, language) if spent <= CODE_BUDGET else None
    body = escape(token.content) if markup is None else markup
    return f'<pre class="hl" tabindex="0" dir="ltr"><code>{body}</code></pre>\n'


def _highlighted(code: str, language: str) -> str | None:
    if language not in _LANGUAGES:
        return None
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def _link_open(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    idx: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    token = tokens[idx]
    shown = "" if token.info == "auto" else _address(token, "href")
    env.setdefault("links", []).append(shown)
    return '<span class="link">'


def _link_close(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    idx: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    return f"</span>{env['links'].pop()}"


def _image(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    idx: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    token = tokens[idx]
    alt = renderer.renderInlineAsText(token.children, options, env)
    return f'<span class="image">{escape(alt)}{_address(token, "src")}</span>'


def _address(token: Token, attribute: str) -> str:
    """Address and title of a link or a picture, to read."""
    shown = " – ".join(
        str(token.attrs[name]) for name in (attribute, "title") if token.attrs.get(name)
    )
    return f' <span class="url">({escape(shown)})</span>' if shown else ""
