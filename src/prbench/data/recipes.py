"""How published datasets become rows of the paper's layout.

Each recipe takes tables and a tally of what it leaves out, and yields rows; what a row must have is checked
afterwards in one place. A profile never holds the question that is being asked.

Confirmed against public code that reads them: PRISM's `utterances` and `survey` columns and root JSONL files, Arena's
columns, RewardBench 2's `chosen`/`rejected` lists, the table names and files of Personalized RewardBench and LaMP-QA.
Not confirmed: that LaMP-QA names its columns `narrative` and `rubric_aspects`, as the paper's own set does.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from prbench.data.fields import read_cell
from prbench.data.rows import Row
from prbench.data.tables import WHOLE, Tables

Recipe = Callable[[Tables, Sequence[str], Counter[str]], Iterator[Row]]
"""`(tables, names of the tables asked for, tally of what is left out) -> rows in the paper's layout`."""

_SURVEY_POSTS = ("self_description", "system_string")


def paper(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[Row]:
    """Personalized RewardBench and LaMP-QA: rows as they are; a row without a category gets its table's name."""
    for name in names:
        for row in tables.rows(name):
            yield row if row.values.get("category") else row._replace(values={**row.values, "category": name})


def rewardbench(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[Row]:
    """RewardBench 2: the first chosen answer against each rejected one; the subset is the category.

    Columns: `id`, `prompt`, `chosen` (list), `rejected` (list), `subset`. The tag `item` joins the pairs of one prompt.
    """
    for row in tables.rows(WHOLE):
        item = str(row.values.get("id"))
        chosen = read_cell(row, "chosen", list, "a list of answers")
        shared = {"question": row.values.get("prompt"), "category": row.values.get("subset"), "tags": {"item": item}}
        for number, rejected in enumerate(read_cell(row, "rejected", list, "a list of answers") or ()):
            best = chosen[0] if chosen else None
            if _is_usable(best, rejected, left_out):
                yield row._replace(values={**shared, "id": f"{item}/{number}", "chosen": best, "rejected": rejected})


def arena(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[Row]:
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


def _arena_pair(vote: Row, winner: str, history: list[dict[str, Any]], left_out: Counter[str]) -> Iterator[Row]:
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
    """What a pair needs of one row of PRISM's `utterances`."""

    id: str
    interaction: str
    conversation: str
    turn: int
    prompt: str
    answer: str
    score: float | None
    chosen: bool
    row: Row


def prism(tables: Tables, names: Sequence[str], left_out: Counter[str]) -> Iterator[Row]:
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


def _prism_pairs(user: str, answers: list[_Utterance], profile: list[Any], left_out: Counter[str]) -> Iterator[Row]:
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


def _utterance(row: Row) -> _Utterance:
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


def _survey_posts(row: Row) -> list[dict[str, str]]:
    texts = {name: row.values.get(name) for name in _SURVEY_POSTS}
    return [{"id": f"survey/{name}", "text": text, "category": "survey"} for name, text in texts.items() if text]


def _opening(vote: Row) -> str:
    messages = read_cell(vote, "conversation_a", list, "a list of messages")
    return str(messages[0].get("content") or "") if messages else ""


def _last_content(vote: Row, field: str) -> str:
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
