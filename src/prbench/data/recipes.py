"""Recipes that turn published datasets into rows of the paper's layout.

Each recipe takes tables and a tally of what it leaves out, and yields rows; what a row must have is checked
afterwards in one place. A profile never holds the question that is being asked.

Confirmed against public code that reads them: PRISM's `utterances` and `survey` columns and root JSONL files, Arena's
columns, RewardBench 2's and RM-Bench's `chosen`/`rejected` lists, JudgeBench's and RMGAP's fields, the columns
`context`, `chosen`, `rejected`, `user_id` and `split` of PersonalRewardBench, the table names and files of
Personalized RewardBench and LaMP-QA.
Not confirmed: that LaMP-QA names its columns `narrative` and `rubric_aspects`, as the paper's own set does.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from prbench.data.fields import read_cell
from prbench.data.hub_tables import WHOLE, Tables
from prbench.data.rows import SourceRow
from prbench.errors import DataError
from prbench.types import CHOSEN_ANSWER, ITEM, REJECTED_ANSWER

Recipe = Callable[[Tables, Sequence[str], Counter[str]], Iterator[SourceRow]]
"""`(tables, names of the tables asked for, tally of what is left out) -> rows in the paper's layout`."""

_STYLES = 3
_JUDGEBENCH = {
    "mmlu-pro": "Knowledge",
    "livebench-reasoning": "Reasoning",
    "livebench-math": "Math",
    "livecodebench": "Coding",
}
"""The four kinds of JudgeBench's questions, by how their source begins."""
_SURVEY_POSTS = ("self_description", "system_string")


def paper(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[SourceRow]:
    """Personalized RewardBench and LaMP-QA: rows as they are; a row without a category gets its table's name."""
    for name in names:
        for row in tables.rows(name):
            yield row if row.values.get("category") else row._replace(values={**row.values, "category": name})


def rewardbench(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[SourceRow]:
    """RewardBench 2: every chosen answer against every rejected one; the subset is the category.

    Columns: `id`, `prompt`, `chosen` (list), `rejected` (list), `subset`. Most prompts have one chosen answer; those of
    the subset Ties have several, and ids `ref:N` and `tied:N`.
    """
    for row in tables.rows(WHOLE):
        shared = {"question": row.values.get("prompt"), "category": row.values.get("subset")}
        yield from _answer_pairs(row, str(row.values.get("id")), shared, left_out)


def rm_bench(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[SourceRow]:
    """RM-Bench: each of three chosen answers against each of three rejected ones, from plain to richly formatted.

    Columns: `id`, `prompt`, `chosen` and `rejected` (lists: concise, detailed, detailed in markdown), `domain`. The
    domain is the category; the places in the lists, which are the styles, are tags.
    """
    for row in tables.rows(WHOLE):
        for field in ("chosen", "rejected"):
            if len(read_cell(row, field, list, "a list of answers") or ()) != _STYLES:
                raise DataError(
                    f"{row.place}: field {field!r} has not {_STYLES} answers, one for each style",
                    hint="is it RM-Bench's total_dataset.json?",
                )
        shared = {"question": row.values.get("prompt"), "category": row.values.get("domain")}
        yield from _answer_pairs(row, str(row.values.get("id")), shared, left_out, split="test")


def judgebench(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[SourceRow]:
    """JudgeBench: one correct and one wrong answer of one model; the category is the kind of question.

    Columns: `pair_id`, `source`, `question`, `response_model`, `response_A`, `response_B`, `label` (`A>B` or `B>A`).
    """
    for row in tables.rows(WHOLE):
        label = read_cell(row, "label", str, "text")
        if label not in ("A>B", "B>A"):
            raise DataError(f"{row.place}: field 'label' is {label!r}", hint="expected 'A>B' or 'B>A'")
        first, second = (read_cell(row, f"response_{side}", str, "text") for side in "AB")
        chosen, rejected = (first, second) if label == "A>B" else (second, first)
        source = read_cell(row, "source", str, "text") or ""
        kind = next((kind for start, kind in _JUDGEBENCH.items() if source.startswith(start)), source)
        if _is_usable(chosen, rejected, left_out):
            yield row._replace(
                values={
                    "id": row.values.get("pair_id"),
                    "question": row.values.get("question"),
                    "category": kind,
                    "chosen": chosen,
                    "rejected": rejected,
                    "tags": {"split": "test", "source": source, "written_by": str(row.values.get("response_model"))},
                }
            )


def personal_rewardbench(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[SourceRow]:
    """PersonalRewardBench: users with a few labelled pairs each, in splits train, val and test; there are no posts.

    Columns: `user_id`, `context` (messages), `chosen` and `rejected` (one message each), `split`. What a user is known
    by are the pairs of the other splits: the context `pairs@K` shows them.
    """
    for row in tables.rows(WHOLE):
        turns = [_turn(turn) for turn in read_cell(row, "context", list, "a list of messages") or ()]
        chosen, rejected = (
            _turn(read_cell(row, field, dict, "a message") or {})["content"] for field in ("chosen", "rejected")
        )
        split = str(row.values.get("split") or row.split)
        if not turns:
            left_out["pairs without a prompt"] += 1
        elif _is_usable(chosen, rejected, left_out):
            user = read_cell(row, "user_id", str, "text")
            values = {"user": user, "question": turns, "chosen": chosen, "rejected": rejected, "tags": {"split": split}}
            yield row._replace(values=values)


def rmgap(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[SourceRow]:
    """RMGAP: four answers, four preferences that each want another one of them, three ways to say each preference.

    Columns: `id`, `domain`, `responses` (`key`, `text`), `prompt_groups` (`winner`, `prompts` of `text`). The
    preference stands in the prompt itself. A model that does not read it has each answer right in one of four cases.
    """
    for row in tables.rows(WHOLE):
        item = str(row.values.get("id"))
        responses = read_cell(row, "responses", list, "a list of answers") or ()
        texts = {str(one["key"]): str(one["text"]) for one in responses}
        for number, group in enumerate(read_cell(row, "prompt_groups", list, "a list of preferences") or ()):
            winner, preference = str(group["winner"]), f"{item}/{number}"
            if winner not in texts:
                raise DataError(f"{row.place}: the winner {winner!r} is none of the answers {sorted(texts)}")
            for version, prompt in enumerate(group["prompts"]):
                for key, text in texts.items():
                    if key == winner or not _is_usable(texts[winner], text, left_out):
                        continue
                    yield row._replace(
                        values={
                            "id": f"{preference}/{version}/{key}",
                            "user": preference,
                            "question": prompt["text"],
                            "category": row.values.get("domain"),
                            "chosen": texts[winner],
                            "rejected": text,
                            "tags": {
                                "split": "test",
                                ITEM: f"{preference}/{version}",
                                "preference": preference,
                                CHOSEN_ANSWER: winner,
                                REJECTED_ANSWER: key,
                            },
                        }
                    )


def _turn(message: Mapping[str, Any]) -> dict[str, str]:
    role = str(message.get("role") or "user")
    return {"role": "assistant" if role == "model" else role, "content": str(message.get("content") or "")}


def _answer_pairs(
    row: SourceRow, item: str, shared: Mapping[str, Any], left_out: Counter[str], split: str = ""
) -> Iterator[SourceRow]:
    """Every chosen answer of a row against every rejected one."""
    chosen, rejected = (read_cell(row, field, list, "a list of answers") or () for field in ("chosen", "rejected"))
    for (i, good), (j, bad) in itertools.product(enumerate(chosen), enumerate(rejected)):
        if _is_usable(good, bad, left_out):
            tags = {ITEM: item, CHOSEN_ANSWER: str(i), REJECTED_ANSWER: str(j), **({"split": split} if split else {})}
            name = f"{item}/{j}" if len(chosen) == 1 else f"{item}/{i}/{j}"
            yield row._replace(values={**shared, "id": name, "chosen": good, "rejected": bad, "tags": tags})


def arena(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[SourceRow]:
    """Chatbot Arena: single-turn votes; the voter is the user, the voter's other prompts are the profile.

    Columns: `question_id`, `winner` (`model_a`, `model_b`, `tie`, `tie (bothbad)`), `judge`, `conversation_a`,
    `conversation_b` (lists of messages), `turn`, `language`. Prompts of ties and of longer conversations are posts too.
    """
    votes = list(tables.rows(WHOLE))
    history: dict[str, list[dict[str, Any]]] = {}
    for vote in votes:
        judge = read_cell(vote, "judge", str, "text")
        post = {"id": read_cell(vote, "question_id", str, "text"), "text": _opening(vote), "category": "prompt"}
        history.setdefault(judge, []).append(post)
    for vote in votes:
        if read_cell(vote, "turn", int, "a number") != 1:
            left_out["votes on more than one turn"] += 1
        elif (winner := read_cell(vote, "winner", str, "text")) not in ("model_a", "model_b"):
            left_out["ties"] += 1
        else:
            yield from _arena_pair(vote, winner, history[vote.values["judge"]], left_out)


def _arena_pair(
    vote: SourceRow, winner: str, history: list[dict[str, Any]], left_out: Counter[str]
) -> Iterator[SourceRow]:
    answers = {side: _last_content(vote, f"conversation_{side}") for side in "ab"}
    won, lost = ("a", "b") if winner == "model_a" else ("b", "a")
    question = _opening(vote)
    if not question.strip():
        left_out["empty prompts"] += 1
    elif _is_usable(answers[won], answers[lost], left_out):
        language = vote.values.get("language")
        yield vote._replace(
            values={
                "id": vote.values["question_id"],
                "user": vote.values["judge"],
                "question": question,
                "profile": [post for post in history if post["text"] != question],
                "chosen": answers[won],
                "rejected": answers[lost],
                "tags": {"language": language} if language else {},
            }
        )


class _Utterance(NamedTuple):
    """Fields of a row of PRISM's `utterances` that a pair needs."""

    id: str
    interaction: str
    conversation: str
    turn: int
    prompt: str
    answer: str
    score: float | None
    chosen: bool
    row: SourceRow


def prism(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[SourceRow]:
    """PRISM: at the first turn of a conversation, the answer the user went on with against each of the others.

    Columns of `utterances`: `utterance_id`, `interaction_id`, `conversation_id`, `user_id`, `turn`, `user_prompt`,
    `model_response`, `score`, `if_chosen`; of `survey`: `user_id`, `self_description`, `system_string`. The profile is
    what the user wrote in the survey and in other conversations. Answers with the chosen one's score are left out.
    """
    survey = {row.values.get("user_id"): _survey_posts(row) for row in tables.rows("survey")}
    by_user: dict[str, list[_Utterance]] = {}
    for row in tables.rows("utterances"):
        by_user.setdefault(read_cell(row, "user_id", str, "text"), []).append(_utterance(row))
    for user, utterances in by_user.items():
        firsts: dict[str, list[_Utterance]] = {}
        for utterance in utterances:
            if utterance.turn == 0:
                firsts.setdefault(utterance.interaction, []).append(utterance)
        for answers in firsts.values():
            profile = survey.get(user, []) + _other_prompts(utterances, answers[0])
            yield from _prism_pairs(user, answers, profile, left_out)


def _prism_pairs(
    user: str, answers: list[_Utterance], profile: list[Any], left_out: Counter[str]
) -> Iterator[SourceRow]:
    chosen = [answer for answer in answers if answer.chosen]
    if len(chosen) != 1:
        left_out["turns without exactly one chosen answer"] += 1
        return
    best = chosen[0]
    if not best.prompt.strip():
        left_out["empty prompts"] += 1
        return
    for other in answers:
        if other.chosen:
            continue
        if other.score == best.score:
            left_out["ties in score"] += 1
        elif _is_usable(best.answer, other.answer, left_out):
            values = {"id": f"{best.id}-{other.id}", "user": user, "question": best.prompt, "profile": profile}
            yield best.row._replace(values={**values, "chosen": best.answer, "rejected": other.answer})


def _utterance(row: SourceRow) -> _Utterance:
    texts = [
        read_cell(row, name, str, "text") or ""
        for name in ("utterance_id", "interaction_id", "conversation_id", "user_prompt", "model_response")
    ]
    name, interaction, conversation, prompt, answer = texts
    turn = read_cell(row, "turn", int, "a number")
    score = row.values.get("score")
    chosen = read_cell(row, "if_chosen", bool, "true or false")
    return _Utterance(
        name, interaction, conversation, turn, prompt, answer, score, bool(chosen), row._replace(values={})
    )


def _other_prompts(utterances: list[_Utterance], present: _Utterance) -> list[dict[str, str]]:
    others = {
        utterance.interaction: utterance.prompt
        for utterance in utterances
        if utterance.conversation != present.conversation and utterance.prompt != present.prompt
    }
    return [{"id": name, "text": text, "category": "prompt"} for name, text in others.items()]


def _survey_posts(row: SourceRow) -> list[dict[str, str]]:
    texts = {name: row.values.get(name) for name in _SURVEY_POSTS}
    return [{"id": f"survey/{name}", "text": text, "category": "survey"} for name, text in texts.items() if text]


def _opening(vote: SourceRow) -> str:
    messages = read_cell(vote, "conversation_a", list, "a list of messages")
    return str(messages[0].get("content") or "") if messages else ""


def _last_content(vote: SourceRow, field: str) -> str:
    messages = read_cell(vote, field, list, "a list of messages")
    return str(messages[-1].get("content") or "") if messages else ""


def _is_usable(chosen: Any, rejected: Any, left_out: Counter[str]) -> bool:
    """Published answers may be empty or equal; such a pair says nothing and is counted, not an error."""
    if not str(chosen or "").strip() or not str(rejected or "").strip():
        left_out["pairs with an empty answer"] += 1
        return False
    if chosen == rejected:
        left_out["pairs of equal answers"] += 1
        return False
    return True
