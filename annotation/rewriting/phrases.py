"""What the rules say and what they take away, in English and Chinese. Pure.

Nothing added here states a fact: a rewrite changes how a thing is said, never what.
"""

from __future__ import annotations

import re

# Sentences that say nothing about the matter.
PLEASANTRY = re.compile(
    r"""^(?:
    (?:sure|certainly|of\ course|absolutely|great\ question|good\ question|hi|hello|hey|thanks
      |thank\ you|no\ problem|happy\ to\ help|glad\ you\ asked)\b[^.!?]{0,60}[.!?]*
    |(?:i\ hope|hope)\ (?:this|that|it)\b.*
    |(?:let\ me\ know|feel\ free|please\ feel\ free|don't\ hesitate|do\ not\ hesitate)\b.*
    |(?:if\ you\ have\ any|should\ you\ have|if\ anything\ is\ unclear)\b.*
    |(?:let(?:'s|\ us)|we\ will|i(?:'ll|\ will))\ (?:go\ through|walk|take|look|break|start|see)\b.*
    |(?:good\ luck|have\ fun|enjoy|you\ can\ do\ it|that\ is\ all|that's\ all|that's\ it)\b.*
    |(?:here\ is|here\ are|here's)\ (?:how|what|a|an|the|some)\b[^.!?:]*[:.]
    |(?:当然|好的|没问题|很高兴|您好|你好|这是个好问题|好问题|谢谢)[^。！？]{0,20}[。！？]?
    |希望(?:这|能|对).*|如果(?:还|您|你)?有(?:任何|其他|什么)?(?:问题|疑问|不明白).*
    |(?:让我们|我们|下面我们|下面)(?:一步一步|来看|先来看|开始).*|祝.{1,12}[！。]?|以上就是.*
    )$""",
    re.I | re.X,
)
# Sentences that explain what another one says.
EXPLANATION = re.compile(
    r"""^(?:
    this\ (?:is\ because|means|way|ensures|helps|makes|allows|will\ help)|that\ way\b
    |in\ other\ words|put\ differently|to\ put\ it|for\ example|for\ instance|as\ an\ example
    |the\ reason\b|because\b
    |note\ that|keep\ in\ mind|remember\ that|think\ of\b|imagine\b|basically\b|essentially\b
    |as\ you\ (?:can\ see|may\ know)|it(?:'s|\ is)\ (?:important|worth|useful|good)\ to
    |也就是说|换句话说|换言之|例如|比如|打个比方|这是因为|因为|这样(?:做|一来|就)|需要注意的是|请注意|值得注意
    |简单来说|通俗地说|可以理解为|原因(?:是|在于)
    ).*""",
    re.I | re.X,
)
# Ends of sentences that explain what stands before them.
CLAUSE = re.compile(
    r"(?:,|\s[–—-])?\s+(?:because|so that|which means(?: that)?"
    r"|which (?:helps|makes|allows|ensures)|since this|in order to make sure)\s[^.!?]*(?=[.!?]?$)"
    r"|，(?:因为|这样|也就是|从而|以便|目的是|这意味着)[^。！？]*(?=[。！？]?$)",
    re.I,
)
ASIDE = re.compile(r"\s*\((?!\d)[^()`]{12,}\)|（[^（）`]{6,}）")
LEAD = re.compile(
    r"^(?:first(?:ly| of all)?|second(?:ly)?|third(?:ly)?|next|then|after that|finally|lastly"
    r"|to begin with|first things first|once that is done|the next thing is this)\s*[,:]\s+"
    r"|^(?:首先|其次|第[一二三四五六七八九十]步|接着|接下来|然后|之后|最后)[，,：:]\s*",
    re.I,
)
STEP_LABEL = re.compile(
    r"^\**(?:step\s+\d+|第[一二三四五六七八九十\d]+步)\**\s*[:：.．]?\**\s*", re.I
)

OPENING = {
    "en": "Let us go through this slowly, one step at a time.",
    "zh": "我们慢慢来，一步一步看。",
}
CLOSING = {
    "en": "That is all. Take the steps in this order, and go back to an earlier one if "
    "something looks different from what you expected.",
    "zh": "以上就是全部内容。按顺序一步一步来，如果结果和预想的不一样，就回到前面的步骤再看一遍。",
}
LEADS = {
    "en": ("To begin with: ", "Next: ", "Then: ", "After that: "),
    "zh": ("首先：", "接着：", "然后：", "接下来："),
}
CODE_ONLY = {"en": "the code that follows", "zh": "下面的代码"}
LAST = {"en": "Finally: ", "zh": "最后："}
# Said after each step in turn; the concise rules know them and take them away again.
NOTES = {
    "en": (
        "Take your time with this one before you go on.",
        "Read it twice if it is new to you.",
        "Go on only when this part is clear.",
        "There is no hurry here.",
    ),
    "zh": (
        "这一步弄清楚了再往下走。",
        "如果是第一次接触，可以多读一遍。",
        "确认没有问题后再继续。",
        "不用着急，慢慢来。",
    ),
}

CONTRACTIONS = (
    ("do not", "don't"),
    ("does not", "doesn't"),
    ("did not", "didn't"),
    ("is not", "isn't"),
    ("are not", "aren't"),
    ("was not", "wasn't"),
    ("cannot", "can't"),
    ("will not", "won't"),
    ("would not", "wouldn't"),
    ("should not", "shouldn't"),
    ("could not", "couldn't"),
    ("have not", "haven't"),
    ("has not", "hasn't"),
    ("it is", "it's"),
    ("that is", "that's"),
    ("there is", "there's"),
    ("you are", "you're"),
    ("we are", "we're"),
    ("they are", "they're"),
    ("you will", "you'll"),
    ("we will", "we'll"),
    ("let us", "let's"),
)
CASUAL_WORDS = (
    ("yes", "yeah"),
    ("going to", "gonna"),
    ("want to", "wanna"),
    ("however", "but"),
    ("therefore", "so"),
    ("in addition", "also"),
    ("additionally", "also"),
    ("utilise", "use"),
    ("utilize", "use"),
)
# What formal text turns back; "but" and "so" have other uses.
FORMAL_WORDS = (("yeah", "yes"), ("gonna", "going to"), ("wanna", "want to"), ("ok", "very well"))
GREETING = {"en": "Hey there! ", "zh": "嗨！"}
PARTING = {"en": "Hope that does it!", "zh": "就这样啦，加油！"}
FORMAL_OPENING = {"en": "Please find the answer below.", "zh": "您好，现答复如下。"}
FORMAL_PARTING = {
    "en": "Please do not hesitate to ask should anything remain unclear.",
    "zh": "如仍有不明之处，敬请告知。",
}
ZH_CASUAL = (("您", "你"), ("请您", "你"), ("是否", "是不是"), ("如何", "怎么"), ("无法", "没法"))
ZH_FORMAL = (("你们", "各位"), ("你", "您"), ("是不是", "是否"), ("怎么", "如何"), ("没法", "无法"))
CASUAL_MARK = re.compile(
    r"\b\w+(?:n't|'s|'re|'ll|'ve)\b|\b(?:hey|yeah|gonna|wanna|ok|okay|hope that does it)\b|!"
    r"|你|啦|嗨|呀|加油|！",
    re.I,
)
FORMAL_MARK = re.compile(
    r"\b(?:do|does|did|is|are|was|will|would|should|could|have|has) not\b|\bcannot\b"
    r"|\b(?:it|that|there) is\b|\b(?:you|we|they) are\b|\bplease\b|\btherefore\b|\bhowever\b"
    r"|您|敬请|现答复|是否|如何|无法",
    re.I,
)
