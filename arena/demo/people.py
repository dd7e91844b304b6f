"""The cast of the demo: logins with a public password, and twelve made-up personas."""

from __future__ import annotations

from dataclasses import dataclass

from webapp.accounts.enums import Role

# DEMO ONLY: printed on every start, so it protects nothing. `load_demo` refuses to run elsewhere.
DEMO_PASSWORD = "palate-demo-2026"  # noqa: S105

DEMO_LOGINS: tuple[tuple[str, Role], ...] = (
    ("ada", Role.ADMIN),
    ("ben", Role.ADMIN),  # the second one, who agrees to unseal
    ("chen", Role.ANNOTATOR),
    ("mei", Role.ANNOTATOR),
    ("omar", Role.ANNOTATOR),  # settles what the others dispute
    ("rosa", Role.RATER),  # owns the persona "Rosa's kitchen"
    ("ravi", Role.RATER),
    ("rui", Role.RATER),
    ("vera", Role.VIEWER),
)
# Of `make loop`: two, because an override and an unsealing need two.
LOOP_LOGINS: tuple[tuple[str, Role], ...] = (("loop-ada", Role.ADMIN), ("loop-ben", Role.ADMIN))
OPEN_ROUND_RATERS = ("chen", "rosa", "ravi", "rui")


@dataclass(frozen=True)
class DemoPersona:
    """`owner` is the login whose persona it is, or empty."""

    pseudonym: str
    summary: str
    expertise: str
    language: str
    detail: str
    tone: str
    goal: str
    owner: str = ""

    @property
    def features(self) -> dict[str, str]:
        names = ("expertise", "language", "detail", "tone", "goal")
        return {name: getattr(self, name) for name in names}

    @property
    def is_expert(self) -> bool:
        return self.expertise == "expert"


PERSONAS: tuple[DemoPersona, ...] = (
    DemoPersona(
        "Rosa's kitchen",
        "Home cook, new to everything technical. Wants everyday words and an example, no lists.",
        "novice", "en", "medium", "friendly", "understand", owner="rosa",
    ),
    DemoPersona(
        "First-year student",
        "Student, 19, starting out. Wants to know why, step by step, without jargon.",
        "novice", "en", "high", "patient", "learn",
    ),
    DemoPersona(
        "Busy parent",
        "Parent of two, five minutes at most. Beginner; wants one thing to do today.",
        "novice", "en", "low", "friendly", "decide",
    ),
    DemoPersona(
        "Backend engineer",
        "Backend engineer, 10 years. Wants the conclusion first, edge cases, no pleasantries.",
        "expert", "en", "medium", "plain", "decide",
    ),
    DemoPersona(
        "Retired physicist",
        "Physicist, retired. Wants the mechanism, numbers and the limits of the claim.",
        "expert", "en", "high", "plain", "understand",
    ),
    DemoPersona(
        "Clinic director",
        "Runs a clinic. Reads on the phone between meetings: two sentences and the one risk.",
        "expert", "en", "low", "plain", "decide",
    ),
    DemoPersona(
        "林阿姨", "退休，六十二岁，刚学用电脑。喜欢大白话和打比方，怕专业词。",
        "novice", "zh", "medium", "friendly", "understand",
    ),
    DemoPersona(
        "大一新生", "大一学生，零基础，想弄懂为什么，希望一步一步讲。",
        "novice", "zh", "high", "patient", "learn",
    ),
    DemoPersona(
        "小店老板", "开小吃店，没时间看长文。外行，只想知道今天该做哪一步。",
        "novice", "zh", "low", "plain", "decide",
    ),
    DemoPersona(
        "资深工程师", "十二年开发经验。先给结论，再说边界情况，不要客套。",
        "expert", "zh", "medium", "plain", "decide",
    ),
    DemoPersona(
        "营养科医生", "营养科医生，看重机理、数据和适用范围，讨厌含糊的说法。",
        "expert", "zh", "high", "plain", "understand",
    ),
    DemoPersona(
        "财务总监", "财务总监，常在手机上看。两句话说完，再加一个最大的风险。",
        "expert", "zh", "low", "plain", "decide",
    ),
)  # fmt: skip
