"""Public formats with their quirks: every record becomes pairs or a refusal that says why."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from annotation.formats.prism import read_survey
from annotation.formats.rows import PairRow
from tests.annotation.pairs import LIMITS, as_list, lines, pairs, parse, refusals, told
from webapp.catalog.formats.rows import PersonaSpec, RowError

Q, GOOD, BAD = "What is a monad?", "A monoid in endofunctors.", "I do not know."
USER = [{"role": "user", "content": Q}]


def answer(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def dialogue(text: str) -> str:
    return f"\n\nHuman: {Q}\n\nAssistant: {text}"


def brief(row: PairRow) -> tuple[Any, ...]:
    said = [(spec.annotator, dict(spec.verdicts)) for spec in row.labels]
    return row.messages, row.first, row.second, said


FIRST_BETTER = [("dataset", {"quality": "first"})]
ONE_TURN = (("user", Q),)
PLAIN_PAIR = (ONE_TURN, GOOD, BAD, FIRST_BETTER)


# TRL and its kin


@pytest.mark.parametrize(
    "record",
    [
        {"prompt": Q, "chosen": GOOD, "rejected": BAD},
        {"prompt": USER, "chosen": answer(GOOD), "rejected": answer(BAD)},
        {"prompt": Q, "chosen": answer(GOOD), "rejected": answer(BAD)},
        {"chosen": USER + answer(GOOD), "rejected": USER + answer(BAD)},
        {"prompt": Q, "chosen": USER + answer(GOOD), "rejected": USER + answer(BAD)},
        {"prompt": USER, "chosen": GOOD, "rejected": BAD},
        {"chosen": dialogue(GOOD), "rejected": dialogue(BAD)},
        {"instruction": Q, "chosen_response": GOOD, "rejected_response": BAD},
        {
            "prompt": json.dumps(USER),
            "chosen": json.dumps(answer(GOOD)),
            "rejected": json.dumps(answer(BAD)),
        },
        {
            "chosen": [{"from": "human", "value": Q}, {"from": "gpt", "value": GOOD}],
            "rejected": [{"from": "human", "value": Q}, {"from": "gpt", "value": BAD}],
        },
    ],
)
def test_chosen_and_rejected_in_every_form(record: dict[str, Any]) -> None:
    assert [brief(row) for row in pairs(lines(record), "trl")] == [PLAIN_PAIR]


def test_names_of_models_and_ratings_are_kept_apart_from_the_texts() -> None:
    argilla = {
        "source": "evol",
        "prompt": Q,
        "chosen": USER + answer(GOOD),
        "chosen-rating": 5.0,
        "chosen-model": "harbor-8b",
        "rejected": USER + answer(BAD),
        "rejected-rating": 2.0,
        "rejected-model": "quarry",
    }
    distilabel = {"prompt": Q, "chosen": GOOD, "chosen_model": "harbor-8b", "rejected": BAD}
    for record in (argilla, distilabel):
        (row,) = pairs(lines(record))
        assert row.first_producer == "harbor-8b"
    assert told(lines(argilla)) == "trl"
    (row,) = pairs(lines(argilla))
    assert (row.second_producer, row.details["chosen-rating"]) == ("quarry", 5.0)


def test_an_implicit_prompt_ends_where_the_conversations_part() -> None:
    before = [*USER, *answer("Shall I be brief?"), {"role": "user", "content": "Yes."}]
    record = {"chosen": before + answer(GOOD), "rejected": before + answer(BAD)}
    (row,) = pairs(lines(record))
    assert [role for role, _content in row.messages] == ["user", "assistant", "user"]
    assert (row.first, row.second) == (GOOD, BAD)


def test_conversations_that_part_early_keep_all_that_follows() -> None:
    more = {"role": "user", "content": "Go on."}
    one = [*USER, *answer(GOOD), more, *answer("Done.")]
    two = [*USER, *answer(BAD), more, *answer("Done.")]
    (row,) = pairs(lines({"chosen": one, "rejected": two}))
    assert row.messages == ONE_TURN
    assert row.first == f"{GOOD}\n\n**User:** Go on.\n\n**Assistant:** Done."


@pytest.mark.parametrize(
    ("record", "code", "field"),
    [
        ({"prompt": Q, "chosen": GOOD, "rejected": answer(BAD)}, "mixed", "rejected"),
        ({"prompt": Q, "chosen": GOOD, "rejected": None}, "type", "rejected"),
        ({"chosen": GOOD, "rejected": BAD}, "missing", "prompt"),
        ({"prompt": "", "chosen": GOOD, "rejected": BAD}, "missing", "prompt"),
        ({"prompt": " ", "chosen": GOOD, "rejected": BAD}, "empty", "prompt"),
        ({"prompt": answer("x"), "chosen": GOOD, "rejected": BAD}, "last_turn", "prompt"),
        ({"chosen": USER, "rejected": USER}, "no_shared_prompt", "chosen"),
        (
            {"chosen": [{"role": "bard", "content": ""}], "rejected": USER},
            "choice",
            "chosen[0].role",
        ),
        (
            {"prompt": Q, "chosen": [{"role": "assistant"}], "rejected": answer(BAD)},
            "missing",
            "chosen[0].content",
        ),
        ({"prompt": Q, "chosen": True, "rejected": BAD}, "type", "chosen"),
    ],
)
def test_what_is_wrong_with_a_preference_is_said(
    record: dict[str, Any], code: str, field: str
) -> None:
    found = refusals(lines(record), "trl")
    assert [(bad.code, bad.field) for bad in found] == [(code, field)]
    assert found[0].row == record


# HH-RLHF


def test_a_dialogue_parts_at_the_last_turn_of_the_assistant() -> None:
    """T21: the first "Human:" would give the wrong question."""
    talk = "\n\nHuman: Hi there.\n\nAssistant: Hello.\n\nHuman: What is 2+2?"
    record = {"chosen": f"{talk}\n\nAssistant: 4.", "rejected": f"{talk}\n\nAssistant: 5."}
    assert told(lines(record)) == "hh_rlhf"
    (row,) = pairs(lines(record))
    assert row.messages == (
        ("user", "Hi there."),
        ("assistant", "Hello."),
        ("user", "What is 2+2?"),
    )
    assert (row.first, row.second) == ("4.", "5.")


def test_an_assistant_in_the_text_is_no_turn() -> None:
    talk = "\n\nHuman: Say “Assistant: hi”.\nAssistant: or not."
    record = {"chosen": f"{talk}\n\nAssistant: hi", "rejected": f"{talk}\n\nAssistant: no"}
    (row,) = pairs(lines(record))
    assert row.messages == (("user", "Say “Assistant: hi”.\nAssistant: or not."),)


@pytest.mark.parametrize(
    ("chosen", "code"),
    [
        ("no dialogue at all", "no_dialogue"),
        ("\n\nHuman: a\n\nAssistant: b\n\nHuman: c", "no_answer"),
        ("\n\nAssistant: b", "no_dialogue"),
    ],
)
def test_what_is_no_dialogue_is_refused(chosen: str, code: str) -> None:
    record = {"chosen": chosen, "rejected": chosen}
    assert [bad.code for bad in refusals(lines(record), "hh_rlhf")] == [code]


def test_an_empty_last_answer_is_kept() -> None:
    talk = "\n\nHuman: a\n\nAssistant:"
    (row,) = pairs(lines({"chosen": f"{talk} b", "rejected": talk}))
    assert (row.first, row.second) == ("b", "")


# Judged pairs


def test_helpsteer3_brings_the_labels_of_its_people() -> None:
    record = {
        "domain": "code",
        "language": "python",
        "context": USER,
        "response1": GOOD,
        "response2": BAD,
        "overall_preference": -2,
        "individual_preference": [
            {"score": -3, "reasoning": "right", "feedback1": "good", "feedback2": None},
            {"score": 0},
            {"score": 1},
        ],
    }
    assert told(lines(record)) == "helpsteer3"
    (row,) = pairs(lines(record))
    said = [(spec.verdicts["quality"], spec.strengths.get("quality")) for spec in row.labels]
    assert said == [("first", 3), ("tie", None), ("second", 1)]
    assert row.labels[0].comment == "right\n\ngood"
    assert (row.category, row.details) == ("code", {"overall_preference": -2})
    (row,) = pairs(lines({**record, "individual_preference": []}))
    assert brief(row)[3] == FIRST_BETTER
    assert row.labels[0].strengths == {"quality": 2}


def test_summaries_come_with_their_worker() -> None:
    record = {
        "info": {"id": "t3", "post": "I lost my cat.", "title": "Cat", "subreddit": "pets"},
        "summaries": [
            {"text": " Cat is gone.", "policy": "sup2", "note": None},
            {"text": "Lost it.", "policy": "ref"},
        ],
        "choice": 1,
        "worker": "W7",
        "extra": {"confidence": 6},
    }
    assert told(lines(record)) == "summarize"
    (row,) = pairs(lines(record))
    assert row.messages[0][1] == "SUBREDDIT: r/pets\n\nTITLE: Cat\n\nPOST: I lost my cat.\n\nTL;DR:"
    assert (row.first, row.first_producer) == ("Cat is gone.", "sup2")
    assert brief(row)[3] == [("W7", {"quality": "second"})]
    article = {**record, "info": {"article": "News.", "title": "T", "post": None}}
    assert pairs(lines(article))[0].messages[0][1] == "T\n\nNews.\n\nTL;DR:"
    bad = refusals(lines({**record, "choice": 2}, {**record, "summaries": [{}]}))
    assert [(one.code, one.field) for one in bad] == [("range", "choice"), ("two", "summaries")]


@pytest.mark.parametrize(
    ("preference", "verdict"),
    [
        (0, "tie"),
        (1, "first"),
        (2, "second"),
        (1.0, "first"),
        (1.02, "first"),
        (1.5, "tie"),
        (1.999, "second"),
        (None, None),
    ],
)
def test_alpaca_preferences(preference: Any, verdict: str | None) -> None:
    record = {
        "instruction": Q,
        "output_1": GOOD,
        "generator_1": "ref",
        "output_2": BAD,
        "generator_2": "mine",
        "annotator": "gpt-x",
        "preference": preference,
    }
    assert told(as_list(record)) == "alpaca_eval"
    (row,) = pairs(as_list(record))
    expected = [("gpt-x", {"quality": verdict})] if verdict else []
    assert brief(row) == (ONE_TURN, GOOD, BAD, expected)
    assert (row.first_producer, row.second_producer) == ("ref", "mine")
    bad = refusals(as_list({**record, "preference": 3}, {**record, "preference": "NaN"}))
    assert [one.code for one in bad] == ["preference", "type"]


def test_llmbar_is_gold_where_it_is_asked_for() -> None:
    record = {"input": Q, "output_1": BAD, "output_2": GOOD, "label": 2}
    (row,) = pairs(as_list(record), gold=True)
    assert (row.gold, row.labels) == ({"quality": "second"}, ())
    (row,) = pairs(as_list(record), axis="personalization")
    assert row.labels[0].verdicts == {"personalization": "second"}
    assert [bad.code for bad in refusals(as_list({**record, "label": 0}))] == ["range"]


def test_pandalm_accounts_for_true_and_for_empty_answers() -> None:
    record = {
        "idx": 3,
        "cmp_key": "bloom-7b_llama-7b",
        "instruction": "",
        "input": Q,
        "response1": GOOD,
        "response2": "",
        "annotator1": 1,
        "annotator2": 0,
        "annotator3": 2,
    }
    found = parse(as_list(record, {**record, "response1": True}, {**record, "input": " "}))
    row, true, blank = found
    assert isinstance(row, PairRow)
    assert brief(row)[0] == ONE_TURN
    assert [spec.verdicts["quality"] for spec in row.labels] == ["first", "tie", "second"]
    assert [spec.annotator for spec in row.labels] == ["annotator1", "annotator2", "annotator3"]
    assert (row.first_producer, row.second_producer) == ("bloom-7b", "llama-7b")
    assert [(bad.code, bad.field, bad.params.get("found")) for bad in (true, blank)] == [  # type: ignore[union-attr]
        ("type", "response1", "true"),
        ("empty", "instruction", None),
    ]


# Arena


BATTLE = {
    "question_id": "q1",
    "model_a": "harbor",
    "model_b": "quarry",
    "winner": "model_b",
    "judge": "arena_user_9",
    "conversation_a": USER + answer(GOOD),
    "conversation_b": USER + answer(BAD),
    "turn": 1,
    "language": "English",
    "tstamp": 1.5,
}


@pytest.mark.parametrize(
    ("winner", "verdict"),
    [
        ("model_a", "first"),
        ("model_b", "second"),
        ("tie", "tie"),
        ("tie (bothbad)", "both_bad"),
        ("Tie (BothBad)", "both_bad"),
    ],
)
def test_winners_of_battles(winner: str, verdict: str) -> None:
    (row,) = pairs(as_list({**BATTLE, "winner": winner}))
    assert brief(row) == (ONE_TURN, GOOD, BAD, [("arena_user_9", {"quality": verdict})])


@pytest.mark.parametrize("winner", ["model_c", "bothbad?", "", None, 1])
def test_an_unknown_winner_is_refused_by_name(winner: Any) -> None:
    (bad,) = refusals(as_list({**BATTLE, "winner": winner}))
    assert (bad.code, bad.field) == ("choice", "winner")
    assert bad.params["found"] == winner or not isinstance(winner, str)


def test_conversations_may_be_json_texts() -> None:
    texts = {name: json.dumps(BATTLE[name]) for name in ("conversation_a", "conversation_b")}
    assert brief(pairs(lines({**BATTLE, **texts}))[0]) == brief(pairs(lines(BATTLE))[0])
    broken = {**BATTLE, "conversation_a": "[{"}
    assert [(bad.code, bad.field) for bad in refusals(lines(broken))] == [
        ("json", "conversation_a")
    ]


def test_a_judge_of_the_first_turn_saw_no_second_one() -> None:
    more = [{"role": "user", "content": "And then?"}]
    record = {
        **BATTLE,
        "question_id": 81,
        "conversation_a": USER + answer(GOOD) + more + answer("x"),
        "conversation_b": USER + answer(BAD) + more + answer("y"),
    }
    assert pairs(lines(record))[0].first == GOOD
    assert "And then?" in pairs(lines({**record, "turn": 2}))[0].first
    other = {**BATTLE, "conversation_b": [{"role": "user", "content": "Else?"}, *answer(BAD)]}
    assert [bad.code for bad in refusals(lines(other))] == ["no_shared_prompt"]


def test_the_55k_table() -> None:
    head = (
        "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie"
    )
    cell = '"[""What is a monad?""]"'
    rows = [
        f'1,h,q,{cell},"[""A monoid in endofunctors.""]","[""I do not know.""]",1,0,0',
        f'2,h,q,{cell},"[null]","[""x""]",0,0,1',
        f'3,h,q,{cell},"[""x"", ""y""]","[""x""]",0,0,1',
        f'4,h,q,{cell},"[""x""]","[""x""]",1,1,0',
    ]
    body = "\n".join([head, *rows]).encode()
    assert told(body) == "arena_table"
    one, two, three, four = parse(body)
    assert isinstance(one, PairRow)
    assert isinstance(two, PairRow)
    assert brief(one) == PLAIN_PAIR
    assert (two.first, two.labels[0].verdicts) == ("", {"quality": "tie"})
    assert [bad.code for bad in (three, four)] == ["turns", "one_winner"]  # type: ignore[union-attr]


# Open-Assistant


def message(name: str, role: str, *replies: Any, **more: Any) -> dict[str, Any]:
    return {
        "message_id": name,
        "parent_id": None,
        "text": f"text of {name}",
        "role": role,
        "lang": "en",
        "replies": list(replies),
        **more,
    }


def test_trees_give_all_pairs_of_their_ranked_replies() -> None:
    deep = message(
        "p2",
        "prompter",
        message("d", "assistant", rank=1),
        message("e", "assistant", rank=0),
    )
    root = message(
        "p1",
        "prompter",
        message("a", "assistant", deep, rank=0, model_name="chip"),
        message("b", "assistant", rank=1),
        message("c", "assistant", rank=None),
    )
    tree = {"message_tree_id": "p1", "tree_state": "x", "prompt": root}
    assert told(lines(tree)) == "oasst"
    found = pairs(lines(tree))
    said = [(r.first[-1], r.second[-1], [dict(s.verdicts) for s in r.labels]) for r in found]
    assert said == [
        ("a", "b", [{"quality": "first"}]),
        ("a", "c", []),
        ("b", "c", []),
        ("d", "e", [{"quality": "second"}]),
    ]
    assert [role for role, _text in found[3].messages] == ["user", "assistant", "user"]
    assert found[0].first_producer == "chip"
    assert [brief(r) for r in pairs(lines({**root}))] == [brief(r) for r in found]


def test_messages_of_a_flat_file_become_the_same_pairs() -> None:
    flat = [
        message("p", "prompter", message_tree_id="p"),
        message("a", "assistant", message_tree_id="p", parent_id="p", rank=1),
        message("b", "assistant", message_tree_id="p", parent_id="p", rank=0),
        message("lost", "assistant", message_tree_id="p", parent_id="nobody"),
        message("q", "prompter", message_tree_id="q"),
    ]
    for one in flat:
        del one["replies"]
    lost, row, alone = parse(lines(*flat))
    assert isinstance(row, PairRow)
    assert (row.first, row.labels[0].verdicts) == ("text of a", {"quality": "second"})
    assert [(bad.code, bad.place.line) for bad in (lost, alone)] == [  # type: ignore[union-attr]
        ("no_parent", 4),
        ("no_pair", 5),
    ]


# PRISM

SURVEY = [
    {"user_id": "user0", "self_description": "I like short answers.", "age": "25-34 years old"},
    {"user_id": "user1", "self_description": "long " * 30, "age": "65+ years old"},
]


def people() -> Any:
    return read_survey(io.BytesIO(lines(*SURVEY)), LIMITS)


def utterance(n: int, **changes: Any) -> dict[str, Any]:
    return {
        "utterance_id": f"ut{n}",
        "conversation_id": "c0",
        "user_id": "user0",
        "turn": 0,
        "user_prompt": Q,
        "model_name": f"m{n}",
        "model_response": f"answer {n}",
        "score": 50 + n,
        "if_chosen": False,
        **changes,
    }


def test_prism_pairs_the_answers_of_a_turn_with_the_person_of_the_survey() -> None:
    later = [utterance(n, turn=1, user_prompt="And then?") for n in (4, 5)]
    rows = [utterance(0), utterance(1, if_chosen=True), utterance(2, score=51), *later]
    assert told(lines(*rows)) == "prism"
    found = pairs(lines(*rows), people=people())
    said = [(r.first[-1], r.second[-1], r.labels[0].verdicts["quality"]) for r in found]
    assert said == [
        ("0", "1", "second"),
        ("0", "2", "second"),
        ("1", "2", "tie"),
        ("4", "5", "second"),
    ]
    person = PersonaSpec("prism-user0", "I like short answers.", (("age_band", "25-34"),))
    assert {row.persona for row in found} == {person}
    assert found[3].messages == (("user", Q), ("assistant", "answer 1"), ("user", "And then?"))


def test_prism_says_who_is_missing_and_who_said_too_much() -> None:
    rows = [
        *(utterance(n, user_id="user1", conversation_id="c1") for n in (0, 1)),
        *(utterance(n, user_id="nobody", conversation_id="c2") for n in (0, 1)),
        utterance(0, conversation_id="c3"),
        utterance(0, conversation_id="c4", score=None),
    ]
    found = refusals(lines(*rows), people=people())
    assert [(bad.code, bad.field) for bad in found] == [
        ("long", "self_description"),
        ("long", "self_description"),
        ("no_person", "user_id"),
        ("no_person", "user_id"),
        ("type", "score"),
        ("no_pair", ""),
    ]
    assert isinstance(people()["user1"], RowError)
