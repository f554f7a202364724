"""From a history to a published suite, with a scripted author behind a real server: every step is known exactly."""

import errno
import json
import re
import shutil
from pathlib import Path

import pytest

import scripted_writer
from fake_server import FakeServer, Fault, Seen, first_attempts, no_fault, where
from prbench.audit import audit
from prbench.build.card import prove_exact
from prbench.build.written import Bounds, Decoding, PairsConfig, SpendingLimits, build_aspects, build_pairs
from prbench.build.written.replies import Replies, WritingRequest
from prbench.config import ModelOptions, Price
from prbench.contexts.derange import mirror_twins
from prbench.data import Suite, load_pairs, load_questions
from prbench.errors import BudgetError, ConfigError, DataError, FileError, ModelError, RunError
from prbench.graders import Grade
from prbench.models import ModelCard
from prbench.models.remote.chat import load_generator
from prbench.models.remote.wire import Backoff
from prbench.prompts.instruction import Instruction
from prbench.rank import BM25
from prbench.types import Message, Prompt

POSTS = Path(__file__).parents[2] / "examples" / "posts.csv"
AT_ONCE = Backoff(initial_s=0.001, max_s=0.002, jitter_s=0.0, retry_after_max_s=0.01)


@pytest.fixture
def server():
    with FakeServer(answer=scripted_writer.write) as running:
        yield running


def author(server: FakeServer, **options):
    return load_generator(f"author@{server.url}", ModelOptions(**{"retries": 0, **options}), backoff=AT_ONCE)


@pytest.fixture
def aspects(server, tmp_path) -> Path:
    build_aspects(POSTS, tmp_path / "aspects.jsonl", author(server))
    server.requests.clear()
    return tmp_path / "aspects.jsonl"


def pairs_of(aspects: Path, out: Path, server: FakeServer, limits: SpendingLimits | None = None, tries=3, **options):
    build_pairs(
        aspects,
        out,
        author(server),
        options=PairsConfig(title="t", **options),
        decoding=Decoding(tries=tries),
        limits=limits,
    )
    return load_pairs(out)


def answer_to(prompt: Prompt) -> str:
    return scripted_writer.write({"messages": [message._asdict() for message in prompt.messages]})


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- aspects ---------------------------------------------------------------------------------------------------------


def test_aspects_are_quotations_of_the_story(server, tmp_path):
    build = build_aspects(POSTS, tmp_path / "a.jsonl", author(server))
    questions = load_questions(tmp_path / "a.jsonl")
    assert len(questions) == build.card.kept == build.card.questions == 8
    for question in questions:
        assert 2 <= len(question.rubric_aspects) <= 8
        assert all(aspect.evidence in question.narrative for aspect in question.rubric_aspects)
        assert question.narrative not in "\n".join(post.text for post in question.profile)
    assert build.card.spent.calls == len(server.requests) == 8
    assert build.card.writer.address == "chat:author"
    assert build.card.writer.prompts == {"aspects.jinja": Instruction.builtin("aspects.jinja").digest}


def test_an_unreadable_reply_is_asked_for_again_with_another_seed_and_then_rejected(server, tmp_path):
    def sometimes(body):
        text = scripted_writer.body_text(body)
        if "running in the evening" in text:
            return "I would rather not."
        return "Hm." if "running in the morning" in text and body["seed"] < 2 else scripted_writer.write(body)

    server.answer = sometimes
    build = build_aspects(POSTS, tmp_path / "a.jsonl", author(server), decoding=Decoding(tries=3))
    assert (build.card.questions, build.card.kept) == (8, 7)
    assert build.card.rejected == {"no 'aspect' line in the reply": 1}
    (reject,) = rows(tmp_path / "a.rejects.jsonl")
    assert (reject["id"], reject["stage"], reject["raw"]) == ("p20", "aspects", "I would rather not.")
    assert len(server.requests) == 8 + 2 + 2
    again = [seen.body for seen in server.requests if "running" in seen.text]
    assert sorted((body["seed"], body["temperature"]) for body in again) == [
        *[(0, 0.0)] * 2,
        *[(1, 0.7)] * 2,
        *[(2, 0.7)] * 2,
    ]


def test_aspects_that_the_history_brings_are_not_asked_for(server, tmp_path):
    history = tmp_path / "h.jsonl"
    told = {"user": "a", "question": "Where?", "narrative": "Cheap.", "rubric_aspects": ["low cost", "by train"]}
    history.write_text("\n".join(map(json.dumps, [{"user": "a", "text": "I like trains."}, told])))
    build = build_aspects(history, tmp_path / "a.jsonl", author(server))
    assert (build.card.kept, build.card.given, len(server.requests)) == (1, 1, 0)


def test_a_small_model_is_asked_sentence_by_sentence(server, tmp_path):
    titles = iter(f"mind point number {number}" for number in range(100))
    server.answer = lambda body: "" if "forget to water" in scripted_writer.body_text(body) else next(titles)
    build = build_aspects(POSTS, tmp_path / "a.jsonl", author(server, concurrency=1), by_sentence=True)
    assert build.card.kept == 8
    question = next(question for question in load_questions(tmp_path / "a.jsonl") if question.id == "p09")
    assert [aspect.evidence for aspect in question.rubric_aspects] == [
        "It should look good when friends come by and must survive on its own.",
        "I would rather pay for a ready-made system than fiddle with soil at night.",
    ]


# --- pairs -----------------------------------------------------------------------------------------------------------


def test_both_answers_come_from_the_same_question_and_ranked_posts(server, aspects, tmp_path):
    suite = pairs_of(aspects, tmp_path / "pairs", server, posts=2)
    questions = {question.id: question for question in load_questions(aspects)}
    assert [pair.id for pair in suite] == list(questions)
    prompt = Instruction.builtin("answer.jinja")
    for pair in suite:
        asked = questions[pair.id]
        posts = BM25().rank(asked.question, asked.profile)[:2]
        shared = {"question": asked.question, "posts": posts, "words": 100}
        follow = prompt.fill(**shared, follow=asked.rubric_aspects, avoid=())
        avoid = prompt.fill(**shared, follow=(), avoid=asked.rubric_aspects)
        assert (pair.chosen, pair.rejected) == (answer_to(follow), answer_to(avoid))
        assert (pair.user, pair.profile, pair.narrative) == (asked.user, asked.profile, asked.narrative)
        assert pair.rubric_aspects == asked.rubric_aspects
    assert len(server.requests) == 2 * len(suite)


def test_every_question_is_a_pair_or_a_reject(server, aspects, tmp_path):
    def unruly(body):
        text = scripted_writer.body_text(body)
        if "running in the morning" in text:
            return "word " * 101
        if "busy week?" in text:
            return "The very same answer for both of them, whatever was asked for."
        longer = "none of" in text and "by the sea with" in text
        return scripted_writer.write(body) + " And so on and so forth." * (6 if longer else 0)

    server.answer = unruly
    suite = pairs_of(aspects, tmp_path / "pairs", server, tries=2)
    rejects = rows(tmp_path / "pairs" / "rejects.jsonl")
    assert {pair.id for pair in suite} | {row["id"] for row in rejects} == {q.id for q in load_questions(aspects)}
    assert len(suite) + len(rejects) == 8
    assert {row["id"]: row["stage"] for row in rejects} == {
        "p14": "answers",
        "p15": "answers",
        "p05": "length-ratio",
        "p19": "length-ratio",
    }
    card = json.loads((tmp_path / "pairs" / "card.json").read_text())
    assert card["rejected"] == {
        "answers": {"N words, over the limit of N": 1, "both answers are the same text": 1},
        "length-ratio": {"chosen has N words, rejected N": 2},
    }
    assert (card["questions"], card["pairs"], card["mirrored_share"]) == (8, 4, 0.0)


def test_the_language_gate_counts_answers_in_another_language(server, aspects, tmp_path):
    def in_german(body):
        thing, place = scripted_writer.answer(scripted_writer.body_text(body)).split()[3:5]
        german = f"Am besten fangen Sie mit dem an, was Sie schon haben, etwa {thing} oder {place}. "
        return german + "Dann sehen wir, ob es auch für die anderen passt, und wenn nicht, ist das nicht schlimm."

    server.answer = in_german
    with pytest.raises(DataError, match="at language"):
        pairs_of(aspects, tmp_path / "pairs", server)
    stages = [row["stage"] for row in rows(tmp_path / "pairs" / "rejects.jsonl")]
    assert len(stages) == 8
    assert stages.count("language") >= 5  # a short question may belong to several languages


def test_where_nothing_is_left_the_folder_says_why(server, aspects, tmp_path):
    server.answer = lambda body: ""
    with pytest.raises(DataError, match="no pair of 8 questions is left: 8 at answers") as error:
        pairs_of(aspects, tmp_path / "pairs", server, tries=1)
    assert "rejects.jsonl" in error.value.hint
    assert len(rows(tmp_path / "pairs" / "rejects.jsonl")) == 8
    assert not (tmp_path / "pairs" / "pairs.parquet").exists()


# --- mirrored --------------------------------------------------------------------------------------------------------


def test_a_mirrored_suite_cannot_be_scored_without_the_user(server, aspects, tmp_path):
    suite = pairs_of(aspects, tmp_path / "pairs", server, mirror="all")
    assert suite.is_mirrored
    assert prove_exact(suite).exact
    twins = mirror_twins(suite)
    assert len(twins) == len(suite) == 14
    for pair in suite:
        twin = twins[pair.id]
        assert (pair.question, pair.chosen, pair.rejected) == (twin.question, twin.rejected, twin.chosen)
        assert pair.user != twin.user
        assert pair.profile
        assert pair.profile != twin.profile
        assert not {aspect.aspect for aspect in pair.rubric_aspects} & {aspect.aspect for aspect in twin.rubric_aspects}
    card = json.loads((tmp_path / "pairs" / "card.json").read_text())
    assert (card["mirrored"], card["mirrored_share"]) == ({"user": 2, "written": 12}, 1.0)
    assert "100% of the pairs (14) are halves of a couple" in (tmp_path / "pairs" / "README.md").read_text()


def test_an_answer_of_a_couple_shows_no_posts_to_the_writer_and_follows_one_rubric(server, aspects, tmp_path):
    suite = pairs_of(aspects, tmp_path / "pairs", server, mirror="all")
    asked = [seen.text for seen in server.requests if scripted_writer.kind(seen.text) == "answer"]
    assert not any("<<< POST" in text for text in asked)
    prompt = Instruction.builtin("answer.jinja")
    twins = mirror_twins(suite)
    for pair in suite:
        request = prompt.fill(
            question=pair.question,
            posts=(),
            follow=pair.rubric_aspects,
            avoid=twins[pair.id].rubric_aspects,
            words=100,
        )
        assert pair.chosen == answer_to(request)


def test_one_opposite_for_each_user_with_what_was_written_for_all_questions(server, aspects, tmp_path):
    suite = pairs_of(aspects, tmp_path / "pairs", server, mirror="all")
    imagined = [pair for pair in suite if pair.user == "marta~opposite"]
    assert len(imagined) == 2
    assert imagined[0].profile == imagined[1].profile
    evidence = [aspect.evidence for pair in imagined for aspect in pair.rubric_aspects]
    assert [post.text for post in imagined[0].profile] == evidence


def test_only_found_couples_are_mirrored_where_asked(server, aspects, tmp_path):
    suite = pairs_of(aspects, tmp_path / "pairs", server, mirror="found")
    halves = [pair for pair in suite if "mirror" in pair.tags]
    assert sorted(pair.id for pair in halves) == ["p14", "p20"]
    assert prove_exact(Suite.of(halves)).exact
    assert len(suite) == 8
    assert not any("opposite" in seen.text for seen in server.requests)


def test_without_an_opposite_a_question_is_rejected_not_half_mirrored(server, aspects, tmp_path):
    def stubborn(body):
        text = scripted_writer.body_text(body)
        return "No." if scripted_writer.kind(text) == "opposites" and "balcony" in text else scripted_writer.write(body)

    server.answer = stubborn
    suite = pairs_of(aspects, tmp_path / "pairs", server, mirror="all")
    assert suite.is_mirrored
    rejects = rows(tmp_path / "pairs" / "rejects.jsonl")
    assert {row["id"] for row in rejects} == {"p04", "p09"}
    assert rejects[0]["reason"] == "no opposite, no 'aspect' line in the reply"


def test_a_gate_takes_whole_couples(server, aspects, tmp_path):
    def leaking(body):
        text = scripted_writer.body_text(body)
        found = scripted_writer.write(body)
        return found + " Write to ann@example.org." if "soil at night" in text else found

    history = POSTS.read_text().replace("Dinner was", "Mail me at ann@example.org. Dinner was")
    (tmp_path / "leaking.csv").write_text(history)
    build_aspects(tmp_path / "leaking.csv", tmp_path / "b.jsonl", author(server))
    server.answer = leaking
    suite = pairs_of(tmp_path / "b.jsonl", tmp_path / "pairs", server, mirror="all")
    gone = {row["id"] for row in rows(tmp_path / "pairs" / "rejects.jsonl") if row["stage"] == "profile-leakage"}
    assert gone == {"p09", "p09~opposite"}
    assert suite.is_mirrored


# --- stops and starts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answered", [1, 7, 19])
def test_a_build_whose_server_died_goes_on_and_comes_to_the_same_bytes(server, aspects, tmp_path, answered):
    whole, broken = tmp_path / "one" / "pairs", tmp_path / "two" / "pairs"
    pairs_of(aspects, whole, server, mirror="all")
    server.requests.clear()
    server.plan = lambda seen: Fault("reset") if seen.number > answered else None
    with pytest.raises(ModelError) as error:
        build_pairs(
            aspects,
            broken,
            author(server, concurrency=1),
            options=PairsConfig(title="t", mirror="all"),
        )
    assert "the same command goes on" in error.value.hint
    assert len(rows(broken / "answers.jsonl")) == answered
    assert not (broken / "pairs.parquet").exists()
    server.plan = no_fault
    server.requests.clear()
    pairs_of(aspects, broken, server, mirror="all")
    assert len(server.requests) == 20 - answered
    assert files_of(broken) == files_of(whole)


def test_a_dead_server_is_not_asked_for_ever(server, tmp_path):
    history = tmp_path / "h.jsonl"
    story = "I would like to be outdoors and have not much money to spend this year."
    lines = [{"user": f"u{n}", "question": f"Where to go in {n}?", "narrative": f"{story} {n}"} for n in range(60)]
    lines += [{"user": f"u{n}", "text": "I like trains."} for n in range(60)]
    history.write_text("\n".join(map(json.dumps, lines)))
    server.plan = lambda seen: Fault("reset") if seen.number > 5 else None
    with pytest.raises(ModelError, match="the server is gone"):
        build_aspects(history, tmp_path / "a.jsonl", author(server, concurrency=2))
    assert len(server.requests) <= 5 + 20 + 6
    assert len(rows(tmp_path / "a.calls.jsonl")) == 5
    assert not (tmp_path / "a.jsonl").exists()


def test_a_finished_build_costs_nothing_and_gives_the_same_bytes(server, aspects, tmp_path):
    pairs_of(aspects, tmp_path / "pairs", server)
    before = files_of(tmp_path / "pairs")
    server.requests.clear()
    pairs_of(aspects, tmp_path / "pairs", server)
    assert not server.requests
    assert files_of(tmp_path / "pairs") == before


def test_a_finished_mirrored_build_is_estimated_at_nothing_and_fits_any_budget(server, aspects, tmp_path):
    def write(body):  # a question that never gets an opposite is not counted as still to be written either
        text = scripted_writer.body_text(body)
        return "No." if scripted_writer.kind(text) == "opposites" and "balcony" in text else scripted_writer.write(body)

    server.answer = write
    priced = author(server, price=Price(per_million_in=1, per_million_out=1))
    options = PairsConfig(title="t", mirror="all")
    first = build_pairs(aspects, tmp_path / "pairs", priced, options=options)
    assert first.publication.card.rejected["answers"]
    server.requests.clear()
    again = build_pairs(aspects, tmp_path / "pairs", priced, options=options, limits=SpendingLimits(max_cost_usd=0))
    assert not server.requests
    assert (again.estimate.requests - again.estimate.in_journal, again.estimate.cost_usd) == (0, 0.0)
    assert again.publication.card == first.publication.card


def test_a_mirrored_build_is_estimated_by_what_it_sends(server, aspects, tmp_path):
    found = build_pairs(aspects, tmp_path / "pairs", author(server), options=PairsConfig(mirror="all"), dry_run=True)
    build_pairs(aspects, tmp_path / "pairs", author(server), options=PairsConfig(mirror="all"))
    prompts = [Prompt(tuple(Message(**message) for message in seen.body["messages"])) for seen in server.requests]
    sent = sum(map(author(server).length, prompts))
    assert found.estimate.requests == len(server.requests)
    assert found.estimate.tokens_in == pytest.approx(sent, rel=0.15)


def test_a_torn_line_is_dropped_and_asked_again_and_a_damaged_one_is_named(server, aspects, tmp_path):
    pairs_of(aspects, tmp_path / "pairs", server)
    before = files_of(tmp_path / "pairs")
    journal = tmp_path / "pairs" / "answers.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    server.requests.clear()
    pairs_of(aspects, tmp_path / "pairs", server)
    assert len(server.requests) == 1
    assert files_of(tmp_path / "pairs") == before
    journal.write_text("{}\n" + journal.read_text())
    with pytest.raises(RunError, match="line 1 is damaged"):
        pairs_of(aspects, tmp_path / "pairs", server)


def test_passing_faults_are_tried_again(server, aspects, tmp_path):
    server.plan = first_attempts(2, Fault("status", status=429, retry_after="0"))
    build_pairs(aspects, tmp_path / "pairs", author(server, retries=3))
    assert len(load_pairs(tmp_path / "pairs")) == 8
    assert {seen.attempt for seen in server.requests} == {1, 2, 3}


def test_a_request_that_is_never_answered_stops_the_build_or_is_counted(server, aspects, tmp_path):
    server.plan = where("small balcony", Fault("status", status=400))
    with pytest.raises(ModelError, match="4 of 16 requests were not answered") as error:
        pairs_of(aspects, tmp_path / "pairs", server)
    assert "--skip-failed" in error.value.hint
    suite = pairs_of(aspects, tmp_path / "pairs", server, SpendingLimits(skip_failed=True))
    assert len(suite) == 6
    assert {row["id"] for row in rows(tmp_path / "pairs" / "rejects.jsonl")} == {"p04", "p09"}


def test_a_dry_run_asks_and_writes_nothing(server, aspects, tmp_path):
    said = []
    found = build_pairs(
        aspects,
        tmp_path / "pairs",
        author(server, price=Price(per_million_in=1, per_million_out=2)),
        options=PairsConfig(mirror="all"),
        dry_run=True,
        say=said.append,
    )
    assert (found.estimate.requests, found.publication, server.requests) == (20, None, [])
    assert found.estimate.cost_usd > 0
    assert "20 requests to send" in said[-1]
    assert not (tmp_path / "pairs").exists()
    assert build_aspects(POSTS, tmp_path / "b.jsonl", author(server), dry_run=True).estimate.requests == 8
    assert not list(tmp_path.glob("b*"))


def test_a_budget_is_kept_before_and_while_spending(server, aspects, tmp_path):
    priced = author(server, price=Price(per_million_in=1e6, per_million_out=0), concurrency=1)
    with pytest.raises(BudgetError, match="not started"):
        build_pairs(aspects, tmp_path / "pairs", priced, limits=SpendingLimits(max_cost_usd=10))
    assert not server.requests
    with pytest.raises(BudgetError, match="price is not known"):
        build_pairs(aspects, tmp_path / "pairs", author(server), limits=SpendingLimits(max_cost_usd=10))
    cheap = author(server, price=Price(per_million_in=0, per_million_out=1e5), concurrency=1)
    with pytest.raises(BudgetError, match="stopped after"):  # replies of 10 tokens, a dollar each: more than foreseen
        build_pairs(
            aspects, tmp_path / "pairs", cheap, options=PairsConfig(words=5), limits=SpendingLimits(max_cost_usd=11.5)
        )
    assert len(rows(tmp_path / "pairs" / "answers.jsonl")) == 12


def test_a_gate_that_cannot_ask_stops_the_build(server, aspects, tmp_path):
    def quality(body):
        text = scripted_writer.body_text(body)
        if scripted_writer.RULES in text:
            return scripted_writer.write(body)
        return "Factuality: 8\nRelevance: 8\nHelpfulness: 8"

    server.answer = quality
    server.plan = lambda seen: Fault("reset") if scripted_writer.RULES not in seen.text else None
    rated = {"options": PairsConfig(title="t"), "rater": author(server)}
    with pytest.raises(ModelError, match="which a gate asks, did not answer"):
        build_pairs(aspects, tmp_path / "pairs", author(server), **rated)
    assert not (tmp_path / "pairs" / "pairs.parquet").exists()
    server.plan = no_fault
    build_pairs(aspects, tmp_path / "pairs", author(server), **rated)
    card = json.loads((tmp_path / "pairs" / "card.json").read_text())
    assert "quality" not in card["gates_left_out"]
    before = len(server.requests)
    build_pairs(aspects, tmp_path / "pairs", author(server), **rated)
    assert len(server.requests) == before


class Judge:
    """Grades by a list of good answers; does not answer while it is out."""

    card = ModelCard(address="chat:judge@http://127.0.0.1:1/v1")

    def __init__(self, good):
        self.good, self.out, self.asked = good, True, 0

    def refuses(self, grading):
        return None

    def forecast(self, gradings):
        return 0

    def grade(self, gradings):
        for place, grading in enumerate(gradings):
            self.asked += 1
            if self.out and self.asked > 3:
                yield place, Grade.failed("out for lunch")
            else:
                yield place, Grade.given([2.0 * (grading.answer in self.good)] * len(grading.aspects))


def test_what_a_judge_said_is_kept_and_a_judge_who_is_out_stops_the_build(server, aspects, tmp_path):
    suite = pairs_of(aspects, tmp_path / "before", server)
    judge = Judge({pair.chosen for pair in suite if pair.user != "marta"})
    judged = {"options": PairsConfig(title="t"), "judges": [judge]}
    with pytest.raises(ModelError, match="out for lunch"):
        build_pairs(aspects, tmp_path / "pairs", author(server), **judged)
    judge.out, judge.asked = False, 0
    build_pairs(aspects, tmp_path / "pairs", author(server), **judged)
    assert judge.asked == 16 - 3
    assert {pair.user for pair in load_pairs(tmp_path / "pairs")} == {"jonas", "aylin", "peter"}
    assert [row["stage"] for row in rows(tmp_path / "pairs" / "rejects.jsonl")] == ["rubric-margin"] * 2
    build_pairs(aspects, tmp_path / "pairs", author(server), **judged)
    assert judge.asked == 16 - 3
    assert "127.0.0.1" not in (tmp_path / "pairs" / "card.json").read_text()


def test_the_card_counts_only_what_the_judges_of_this_build_said(server, aspects, tmp_path):
    suite = pairs_of(aspects, tmp_path / "pairs", server)
    judge = Judge({pair.chosen for pair in suite})
    judge.out = False
    asked = build_pairs(aspects, tmp_path / "pairs", author(server), options=PairsConfig(title="t"), judges=[judge])
    assert asked.publication.card.spent_on_gates.calls == 16
    without = build_pairs(aspects, tmp_path / "pairs", author(server), options=PairsConfig(title="t"))
    assert without.publication.card.spent_on_gates.calls == 0
    again = build_pairs(aspects, tmp_path / "pairs", author(server), options=PairsConfig(title="t"), judges=[judge])
    assert (again.publication.card, judge.asked) == (asked.publication.card, 16)


def test_two_builds_do_not_write_to_one_journal(server, aspects, tmp_path):
    request = {"a": WritingRequest(Instruction("{{ x }}").fill(x="hello"), lambda text: text)}
    with Replies(author(server), tmp_path / "j.jsonl", Decoding()) as first:
        first.ask("greetings", request)
        with (
            Replies(author(server), tmp_path / "j.jsonl", Decoding(seed=1)) as second,
            pytest.raises(RunError, match="another process is writing"),
        ):
            second.ask("greetings", request)


def test_questions_of_a_mirrored_suite_do_not_bring_its_couples(server, aspects, tmp_path):
    pairs_of(aspects, tmp_path / "one", server, mirror="all")
    suite = pairs_of(tmp_path / "one" / "pairs.jsonl", tmp_path / "two", server)
    assert not any("mirror" in pair.tags or "couple" in pair.tags for pair in suite)


# --- published -------------------------------------------------------------------------------------------------------


def test_what_is_published_loads_everywhere_and_is_described(server, aspects, tmp_path):
    import datasets

    folder = tmp_path / "pairs"
    suite = pairs_of(aspects, folder, server, mirror="all", license="cc-by-4.0")
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert list(loaded) == ["test"]
    paper = ["id", "question", "profile", "rubric_aspects", "narrative", "category", "chosen", "rejected"]
    assert set(paper) <= set(loaded["test"].column_names)
    assert loaded["test"]["chosen"][:] == [pair.chosen for pair in suite]
    assert set(loaded["test"][0]["profile"][0]) == {"id", "category", "text"}
    assert set(loaded["test"][0]["rubric_aspects"][0]) == {"aspect", "evidence", "reason"}
    assert load_pairs(folder / "pairs.jsonl").record.fingerprint == suite.record.fingerprint
    card = json.loads((folder / "card.json").read_text())
    readme = (folder / "README.md").read_text()
    assert card["fingerprint"] == suite.record.fingerprint
    assert card["fingerprint"] in readme
    assert 'license: "cc-by-4.0"' in readme
    for name in ("answer.jinja", "opposite.jinja", "aspects.jinja"):
        assert Instruction.builtin(name).digest in readme
    gates = json.loads((folder / "gates.json").read_text())
    assert [gate["gate"] for gate in gates["gates"]] == [gate["gate"] for gate in card["gates"]]
    assert server.root not in json.dumps(card) + readme  # where a model was served is nobody's business
    verdicts = {finding.check: finding.verdict.value for finding in audit(suite).findings}
    assert "fail" not in verdicts.values(), verdicts


def test_several_splits_become_several_files(server, aspects, tmp_path):
    import datasets

    lines = rows(aspects)
    for line in lines:
        line["tags"] = {"split": "train" if line["user"] in ("marta", "jonas") else "test"}
    (tmp_path / "split.jsonl").write_text("\n".join(map(json.dumps, lines)))
    suite = pairs_of(tmp_path / "split.jsonl", tmp_path / "pairs", server)
    assert suite.record.splits == {"test": 4, "train": 4}
    loaded = datasets.load_dataset(str(tmp_path / "pairs"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(part) for name, part in loaded.items()} == {"test": 4, "train": 4}


def test_nothing_is_half_written(server, aspects, tmp_path, monkeypatch):
    pairs_of(aspects, tmp_path / "out" / "pairs", server)
    before = files_of(tmp_path / "out" / "pairs")

    def full_disk(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("prbench.build.written.readme.readme", full_disk)
    with pytest.raises(FileError, match="the disk is full"):
        pairs_of(aspects, tmp_path / "out" / "pairs", server, words=90)
    after = files_of(tmp_path / "out" / "pairs")
    assert {name: data for name, data in after.items() if name not in ("answers.jsonl", ".answers.jsonl.lock")} == {
        name: data for name, data in before.items() if name != "answers.jsonl"
    }
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["pairs"]


def test_somebody_elses_folder_is_refused(server, aspects, tmp_path):
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds files of something else"):
        pairs_of(aspects, tmp_path / "pairs", server)
    with pytest.raises(ConfigError, match="is a file"):
        pairs_of(aspects, tmp_path / "pairs" / "thesis.txt", server)
    with pytest.raises(ConfigError, match=re.escape("should be a .jsonl file")):
        build_aspects(POSTS, tmp_path / "aspects.csv", author(server))
    assert not server.requests


def test_a_suite_can_be_built_upon_where_one_stands(server, aspects, tmp_path, monkeypatch):
    pairs_of(aspects, tmp_path / "one", server)
    monkeypatch.chdir(tmp_path / "one")
    assert len(pairs_of(".", tmp_path / "two", server)) == 8


def test_questions_without_aspects_are_said_to_be(server, tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "1", "question": "Tea?", "profile": ["I like tea."]}\n')
    with pytest.raises(DataError, match="none with rubric aspects") as error:
        pairs_of(path, tmp_path / "pairs", server)
    assert "prbench build aspects" in error.value.hint


def test_one_user_can_be_built_for_and_mirrored(server, tmp_path):
    lines = POSTS.read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join([lines[0], *(line for line in lines if ",marta," in line)]))
    build = build_aspects(tmp_path / "one.csv", tmp_path / "a.jsonl", author(server))
    assert "one user" in build.card.notes[0]
    assert len(pairs_of(tmp_path / "a.jsonl", tmp_path / "plain", server)) == 2
    assert pairs_of(tmp_path / "a.jsonl", tmp_path / "mirrored", server, mirror="all").is_mirrored


def test_a_model_with_a_small_window_is_shown_fewer_posts(server, aspects, tmp_path):
    small = author(server, window=530)
    build_pairs(aspects, tmp_path / "pairs", small, decoding=Decoding(max_tokens=200))
    shown = {seen.text.count("<<< POST") for seen in server.requests}
    assert shown
    assert max(shown) < 3
    shutil.rmtree(tmp_path / "pairs")
    with pytest.raises(DataError, match="8 at answers"):
        build_pairs(aspects, tmp_path / "pairs", author(server, window=250), decoding=Decoding(max_tokens=200))
    assert "over the model's window" in rows(tmp_path / "pairs" / "rejects.jsonl")[0]["reason"]


def test_the_history_bounds_reach_the_profile(server, tmp_path):
    build = build_aspects(POSTS, tmp_path / "a.jsonl", author(server), bounds=Bounds(max_posts=1, limit=3))
    assert [len(question.profile) for question in build.questions] == [1, 1, 1]


def test_seen_requests_never_hold_what_a_reward_model_is_scored_by(server, aspects, tmp_path):
    """The narrative is shown to nobody who writes answers: aspects alone carry the standard."""
    pairs_of(aspects, tmp_path / "pairs", server, mirror="all")
    stories = [question.narrative for question in load_questions(aspects)]
    asked: list[Seen] = server.requests
    assert not any(story in seen.text for story in stories for seen in asked)


def test_aspects_that_were_edited_are_not_written_over(server, aspects):
    edited = "".join(aspects.read_text(encoding="utf-8").splitlines(keepends=True)[:2])
    aspects.write_text(edited, encoding="utf-8")
    with pytest.raises(ConfigError, match="was edited since it was written"):
        build_aspects(POSTS, aspects, author(server))
    assert aspects.read_text(encoding="utf-8") == edited


def test_a_build_that_comes_to_nothing_leaves_the_earlier_suite_as_it_was(server, aspects, tmp_path):
    pairs_of(aspects, tmp_path / "pairs", server)
    suite = [path for path in sorted((tmp_path / "pairs").iterdir()) if path.name != "answers.jsonl"]
    before = {path: path.read_bytes() for path in suite if path.is_file()}
    server.answer = lambda body: ""
    with pytest.raises(DataError, match="no pair of 8 questions is left") as error:
        pairs_of(aspects, tmp_path / "pairs", server, words=90)
    assert "rejects.failed.jsonl" in str(error.value.hint)
    assert {path: path.read_bytes() for path in before} == before
