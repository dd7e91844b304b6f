"""Phrases that announce instead of helping. The miner proposes more; an administrator decides."""

from __future__ import annotations

STOCK = (
    # claims of having tailored something
    "according to your needs",
    "based on your needs",
    "tailored to your needs",
    "tailored just for you",
    "tailored this plan for you",
    "tailored for you",
    "customized for you",
    "personalized for you",
    "specially for you",
    "as per your preferences",
    "perfectly matches your preferences",
    "根据您的需求",
    "根据你的需求",
    "按照您的需求",
    "结合您的情况",
    "为您量身定制",
    "为你量身定制",
    "量身定制",
    "量身打造",
    "专属方案",
    "为您精心准备",
    "完全符合您的偏好",
    # flattery and filler
    "great question",
    "excellent question",
    "what a wonderful question",
    "i completely understand",
    "as an ai language model",
    "it is important to note that",
    "it is worth noting that",
    "in today's fast-paced world",
    "i hope this helps",
    "feel free to reach out",
    "let me know if you have any questions",
    "您问得真好",
    "这是一个非常好的问题",
    "这是个好问题",
    "作为一个人工智能",
    "值得注意的是",
    "众所周知",
    "综上所述",
    "希望对您有所帮助",
    "希望对你有所帮助",
    "如有任何问题请随时",
)

# How sentences begin that only greet or close.
CEREMONY = tuple(
    """hello|hi there|dear user|good day|thank you for|thanks for asking|great question|i hope this|
    let me know if|feel free to|best regards|have a nice|
    您好|你好|亲爱的|尊敬的|感谢您的|谢谢您的|希望对|如有任何问题|如果您还有|祝您|祝你""".replace(
        "\n    ", ""
    ).split("|")
)
