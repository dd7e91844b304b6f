"""The connecting words of the styles, in both languages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """What a style needs to join sentences. Tuples are variants of the same thing."""

    colon: str
    join: str  # between two sentences
    heads: tuple[str, str, str, str]  # of the textbook: answer, steps, background, limits
    columns: tuple[str, str]
    first_step: str
    warm_hello: tuple[str, ...]
    warm_goodbye: tuple[str, ...]
    praise: tuple[str, ...]
    filler: tuple[str, ...]
    stock_end: tuple[str, ...]
    summary: tuple[str, ...]
    in_table: tuple[str, ...]


EN = Words(
    colon=":",
    join=" ",
    heads=("Answer", "Step by step", "Background", "Limits"),
    columns=("Point", "What it means"),
    first_step="Start today with this:",
    warm_hello=(
        "Good that you ask, many people stumble over this.",
        "Let us look at it together, it is less hard than it seems.",
        "This puzzles nearly everybody at first, so you are in good company.",
    ),
    warm_goodbye=(
        "Take it slowly, and it will come out well.",
        "Try the first step, and the rest will feel easier.",
        "You can do this, one small step at a time.",
    ),
    praise=(
        "What a fantastic and insightful question! You clearly have a brilliant mind.",
        "Wow, I absolutely love this question! It shows how thoughtful you are.",
        "Great question! Only very curious people like you think of asking this.",
    ),
    filler=(
        "In today's fast-paced world this is a truly fascinating topic with many facets, and every "
        "situation is unique.",
        "It is important to note that there are many perspectives on this, and that it always "
        "depends on a variety of factors.",
    ),
    stock_end=(
        "I hope this helps! Do not hesitate to ask me anything else, you are doing amazing!",
        "I trust this comprehensive overview was valuable. Feel free to reach out at any time!",
    ),
    summary=("In short", "The essence", "To sum up"),
    in_table=("The points at a glance:", "As a table:", "Laid out by point:"),
)

ZH = Words(
    colon="：",
    join="",
    heads=("结论", "步骤", "原理", "注意"),
    columns=("要点", "说明"),
    first_step="今天先做这一步：",
    warm_hello=(
        "您问得正好，很多人都在这里犯难。",
        "别急，我们一起慢慢看，其实没有想象的难。",
        "几乎人人一开始都会困惑，您并不孤单。",
    ),
    warm_goodbye=(
        "慢慢来，一定会做好的。",
        "先试第一步，后面就顺了。",
        "一步一步来，您一定可以。",
    ),
    praise=(
        "这真是一个非常棒、非常有深度的问题！您的思考太令人佩服了。",
        "哇，太喜欢这个问题了！一看就知道您是个特别用心的人。",
        "问得太好了！只有像您这样好学的人才会想到。",
    ),
    filler=(
        "在当今快节奏的时代，这是一个十分引人深思的话题，每个人的情况都不尽相同。",
        "需要注意的是，这个问题有很多角度，往往取决于多种因素。",
    ),
    stock_end=(
        "希望以上内容对您有所帮助！如有任何问题，欢迎随时继续提问，您真的很棒！",
        "以上就是全面的解答，祝您生活愉快、一切顺利！",
    ),
    summary=("总的来说", "一句话概括", "归纳起来"),
    in_table=("要点一览：", "列成表格：", "逐条整理如下："),
)

WORDS = {"en": EN, "zh": ZH}
