"""Suites made from questions with aspects: answers are written, held against gates, and published.

Two phases on disk: `answers.jsonl` keeps every reply as it comes; once all are there, gates look and the folder is
written whole. Starting again asks only for what is missing, and the same replies give the same files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from prbench.build.gates import Gate, GateReport, run_gates
from prbench.build.gates import left_out as gates_left_out
from prbench.build.written.answers import SIDES, Writing, WritingTask, WrittenDrafts, collect, requests
from prbench.build.written.card import Writer
from prbench.build.written.estimate import BuildEstimate, estimate, refuse_estimate
from prbench.build.written.gate_replies import GateReplies
from prbench.build.written.journal import total
from prbench.build.written.opposites import find_couples, imagine, opposite_request, stand_in
from prbench.build.written.publish import (
    ANSWERS,
    GATE_CALLS,
    Publication,
    publish,
    publish_nothing,
    refuse_foreign,
)
from prbench.build.written.replies import Decoding, Rejection, Replies, SpendingLimits, WritingRequest
from prbench.calls import SPEND_FILE, Budget
from prbench.config import Config
from prbench.data import load_questions
from prbench.errors import DataError
from prbench.graders import RubricJudge
from prbench.models import Generator
from prbench.prompts import Instruction
from prbench.prompts.writing import Opposite
from prbench.rank import BM25
from prbench.types import Question

_ANSWER, _OPPOSITE = "answer.jinja", "opposite.jinja"
_TOKENS_PER_WORD = 1.4
_OPPOSITE_TOKENS = 400

Mirror = Literal["none", "found", "all"]
"""Questions that are mirrored: none; those that two users asked nearly alike; all, with imagined opposites."""


class PairsConfig(Config):
    """Settings for writing pairs."""

    mirror: Mirror = "none"
    near: float = Field(default=0.8, gt=0, le=1)
    """Shared part of the words from which two users' questions are nearly identical."""
    words: int = Field(default=100, ge=5)
    posts: int = Field(default=10, ge=0)
    limit: int | None = Field(default=None, ge=1)
    gates: tuple[str, ...] = ()
    """Gates as typed: `NAME=THRESHOLD`, or `no:NAME`."""
    license: str = "other"
    title: str = ""


class PairsBuild(NamedTuple):
    """Result of a build of pairs; without a publication where nothing was asked (`dry_run`)."""

    estimate: BuildEstimate
    publication: Publication | None = None


def build_pairs(
    aspects: str | Path,
    out: str | Path,
    generator: Generator,
    *,
    options: PairsConfig | None = None,
    columns: Mapping[str, str] | None = None,
    judges: Sequence[RubricJudge] = (),
    rater: Generator | None = None,
    decoding: Decoding | None = None,
    limits: SpendingLimits | None = None,
    dry_run: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> PairsBuild:
    """Write a suite out of questions with rubric aspects.

    Args:
        aspects: What `build_aspects` wrote, or any source of questions with aspects (`lamp-qa=DIR`).
        out: Folder of the suite.
        generator: Who writes both answers, and imagined opposites.
        options: Settings of the build.
        columns: Field → column, where columns have other names.
        judges: For the gates `rubric-margin` (one) and `agreement` (two).
        rater: For the gate `quality`.
        decoding: How replies are asked for.
        limits: Limits at which the build stops.
        dry_run: BuildEstimate only; nothing is asked or written.
        say: Told how far it is.

    Raises:
        DataError: If there is nothing to write for, or if no pair passes the gates.
        ModelError: If requests were not answered; the same call goes on from there.
    """
    folder, options, decoding, limits = (
        Path(out),
        options or PairsConfig(),
        decoding or Decoding(),
        limits or SpendingLimits(),
    )
    refuse_foreign(folder)
    questions = _questions(aspects, columns or {}, options.limit)
    build = _Build(generator, options, decoding, say)
    with ExitStack() as stack:
        gate_replies = stack.enter_context(GateReplies(folder / GATE_CALLS))
        gates = gate_replies.gates(options.gates, judges, rater)
        author = stack.enter_context(
            Replies(generator, folder / ANSWERS, decoding, skip_failed=limits.skip_failed, say=say)
        )
        tasks = build.plan(questions)
        found = build.estimate(tasks, author)
        say(found.line())
        if judges or rater:
            say("not in this estimate: what gates ask, two requests for each draft and model")
        if dry_run:
            return PairsBuild(found)
        spent_usd = author.cost_usd + gate_replies.cost_usd
        # Beside the folder: what is published is the suite, not what it cost to make.
        spend = folder.with_name(f"{folder.name}.{SPEND_FILE}")
        budget = stack.enter_context(Budget(spend, limits.max_cost_usd, spent_usd=spent_usd))
        author.budget = gate_replies.budget = budget
        refuse_estimate(found, budget)
        written = build.write(tasks, author)
        with budget.metering("gates"):
            report = run_gates(written.drafts, gates)
        say(f"spent {budget.spending.words()}")
        publication = build.publication(questions, written, report, gates, author, gate_replies)
    return PairsBuild(found, _published(folder, publication, aspects))


def _published(folder: Path, publication: Publication, aspects: str | Path) -> Publication:
    if publication.report.kept:
        return publish(folder, publication, aspects)
    rejects = publish_nothing(folder, publication)
    raise DataError(
        f"no pair of {publication.questions:,} questions is left: {publication.lost}",
        hint=f"{rejects} has every reject with its reason; another model, --tries or --gate may help",
    )


def _questions(source: str | Path, columns: Mapping[str, str], limit: int | None) -> tuple[Question, ...]:
    questions = load_questions(source, columns=columns)[:limit]
    if not any(question.rubric_aspects for question in questions):
        raise DataError(
            f"{str(source)!r} has {len(questions):,} questions, but none with rubric aspects",
            hint="`prbench build aspects HISTORY -o aspects.jsonl --model …` finds them",
        )
    return questions


class _Build:
    """One build: what stays the same over its steps."""

    def __init__(
        self, generator: Generator, options: PairsConfig, decoding: Decoding, say: Callable[[str], None]
    ) -> None:
        self._generator = generator
        self._options = options
        self._decoding = decoding
        self._say = say
        self._ranker = BM25()
        self._opposite = Instruction.builtin(_OPPOSITE)
        self._writing = Writing(Instruction.builtin(_ANSWER), options.words, options.posts)

    def plan(self, questions: Sequence[Question]) -> list[WritingTask]:
        """Return the tasks to write: couples of real users first, then every question by itself."""
        usable = [question for question in questions if question.rubric_aspects]
        found = find_couples(usable, self._options.near)
        if found.couples:
            self._say(f"{len(found.couples):,} couples of users asked nearly the same question with other expectations")
        couples = found.couples if self._options.mirror != "none" else []
        tasks = [WritingTask(one, two, "user") for one, two in couples]
        taken = {question.id for couple in couples for question in couple}
        alone = [WritingTask(question) for question in usable if question.id not in taken]
        return [*tasks, *alone]

    def estimate(self, tasks: Sequence[WritingTask], author: Replies) -> BuildEstimate:
        """Return what is still to be asked: two answers for each task, and an opposite where one must be imagined."""
        opposites = self._opposite_requests(tasks)
        answers = dict(self._answer_requests(self._foreseen(tasks, author, opposites), author, {}))
        missing = author.missing(answers) + author.missing(opposites)
        tokens = round(self._options.words * _TOKENS_PER_WORD)
        if opposites:
            share = len(opposites) / (len(opposites) + len(answers))
            tokens = round(tokens + share * (_OPPOSITE_TOKENS - tokens))
        return estimate(self._generator, len(answers) + len(opposites), missing, tokens)

    def _foreseen(
        self,
        tasks: Sequence[WritingTask],
        author: Replies,
        opposites: Mapping[str, WritingRequest[tuple[Opposite, ...]]],
    ) -> list[WritingTask]:
        """The tasks with the opposites that the journal has, and stand-ins of about the same size for the others."""
        alone = {task.question.id: task.question for task in tasks if task.question.id in opposites}
        known = author.known(opposites)
        halves = imagine({name: alone[name] for name in known}, known)
        return [
            WritingTask(one, halves.get(one.id) or stand_in(one), "written") if one.id in opposites else task
            for task in tasks
            if not isinstance(known.get((one := task.question).id), Rejection)
        ]

    def write(self, tasks: Sequence[WritingTask], author: Replies) -> WrittenDrafts:
        """Have opposites imagined and answers written."""
        tasks, without = self._imagine(tasks, author)
        unfit: dict[str, Rejection] = {}
        replies = author.ask("answers", dict(self._answer_requests(tasks, author, unfit)))
        replies |= {f"{name}/{side}": reason for name, reason in unfit.items() for side in SIDES}
        written = collect(tasks, replies)
        written.rejects.extend(without)
        return written

    def _imagine(
        self, tasks: Sequence[WritingTask], author: Replies
    ) -> tuple[list[WritingTask], list[tuple[Question, Rejection]]]:
        """Give an opposite to each question that has none, where all are to be mirrored; who gets none is rejected."""
        wanted = self._opposite_requests(tasks)
        alone = {task.question.id: task.question for task in tasks if task.question.id in wanted}
        opposites = author.ask("opposites", wanted)
        halves = imagine(alone, opposites)
        coupled = [
            WritingTask(task.question, halves[task.question.id], "written") if task.question.id in halves else task
            for task in tasks
            if task.question.id in halves or task.question.id not in wanted
        ]
        lost = ((alone[name], reply) for name, reply in opposites.items() if isinstance(reply, Rejection))
        return coupled, [(question, Rejection(f"no opposite, {why.reason}", why.raw)) for question, why in lost]

    def publication(
        self,
        questions: Sequence[Question],
        written: WrittenDrafts,
        report: GateReport,
        gates: Sequence[Gate],
        author: Replies,
        gate_replies: GateReplies,
    ) -> Publication:
        """Everything that the folder will say."""
        prompts = {_ANSWER: self._writing.prompt.digest}
        if self._options.mirror == "all":
            prompts[_OPPOSITE] = self._opposite.digest
        without = [(q, Rejection("no rubric aspects")) for q in questions if not q.rubric_aspects]
        return Publication(
            report=report,
            rejects=tuple(sorted([*written.rejects, *without], key=lambda item: item[0].id)),
            questions=len(questions),
            options=self._options.model_dump(mode="json"),
            writer=Writer.of(self._generator, self._decoding, prompts),
            spent=total(author.used.values()),
            spent_on_gates=gate_replies.usage,
            gates_left_out=gates_left_out(gates),
            journal=tuple(author.lines()),
            gate_calls=tuple(gate_replies.lines()),
        )

    def _opposite_requests(self, tasks: Sequence[WritingTask]) -> dict[str, WritingRequest[tuple[Opposite, ...]]]:
        if self._options.mirror != "all":
            return {}
        alone = (task.question for task in tasks if task.source == "plain")
        return {question.id: opposite_request(self._opposite, question) for question in alone}

    def _answer_requests(
        self, tasks: Sequence[WritingTask], author: Replies, unfit: dict[str, Rejection]
    ) -> Iterator[tuple[str, WritingRequest[str]]]:
        for task in tasks:
            both = requests(task, self._writing, self._ranker, author)
            if isinstance(both, Rejection):
                unfit[task.question.id] = both
            else:
                yield from zip((f"{task.question.id}/{side}" for side in SIDES), both, strict=True)
