"""Rubric aspects made from narratives: what each user expects of an answer, with the words that show it.

Aspects that a history brings itself are kept as they are. Everything else is asked of a model and read strictly; a
question without readable aspects is a reject with its reason, never a pair with a weak standard.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from prbench._version import __version__
from prbench.build.written.card import AspectsCard, Spent, Writer, count_reasons
from prbench.build.written.estimate import BuildEstimate, estimate, refuse_estimate
from prbench.build.written.extraction import Extraction, SentenceBySentence, WholeStory
from prbench.build.written.history import Bounds, History, read_history
from prbench.build.written.journal import total
from prbench.build.written.replies import Decoding, Rejection, Replies, SpendingLimits
from prbench.calls import SPEND_FILE, Budget
from prbench.errors import ConfigError, DataError
from prbench.files import read_bytes, read_model, write_whole
from prbench.models import Generator
from prbench.types import Aspect, Question


class AspectFiles(NamedTuple):
    """Paths of the files beside the file of aspects."""

    aspects: Path
    calls: Path
    rejects: Path
    card: Path
    spend: Path

    @classmethod
    def at(cls, out: Path) -> "AspectFiles":
        """The files of one build.

        Example:
            >>> AspectFiles.at(Path("a/mine.jsonl")).calls.as_posix()
            'a/mine.calls.jsonl'
        """
        if out.suffix != ".jsonl" or out.is_dir():
            raise ConfigError(f"--out {str(out)!r} should be a .jsonl file", hint="for example -o aspects.jsonl")
        stem = out.name.removesuffix(".jsonl")
        beside = (out.with_name(f"{stem}.{name}") for name in ("calls.jsonl", "rejects.jsonl", "card.json", SPEND_FILE))
        return cls(out, *beside)


class AspectsBuild(NamedTuple):
    """Result of a build of aspects; without a card where nothing was asked (`dry_run`)."""

    estimate: BuildEstimate
    questions: tuple[Question, ...] = ()
    card: AspectsCard | None = None


def build_aspects(
    history: str | Path,
    out: str | Path,
    generator: Generator,
    *,
    columns: Mapping[str, str] | None = None,
    bounds: Bounds | None = None,
    decoding: Decoding | None = None,
    limits: SpendingLimits | None = None,
    by_sentence: bool = False,
    dry_run: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> AspectsBuild:
    """Find out what each user of a history expects of an answer to each of their questions.

    Args:
        history: See `read_history`.
        out: The JSONL file of questions with aspects, profile and narrative; journal, rejects and card stand beside it.
        generator: Model that reads the narratives.
        columns: Field → column of the history, where columns have other names.
        bounds: How much of the history is used.
        decoding: How replies are asked for.
        limits: Limits at which the build stops.
        by_sentence: Ask about one sentence of a narrative at a time, for models too small to keep a format.
        dry_run: BuildEstimate only; nothing is asked or written.
        say: Told how far it is.

    Raises:
        DataError: If the history cannot be read, or asks nothing.
        ModelError: If requests were not answered; the same call goes on from there.
    """
    files, decoding, limits = AspectFiles.at(Path(out)), decoding or Decoding(), limits or SpendingLimits()
    if not dry_run:
        _refuse_edited(files)
    read = read_history(Path(history), columns, bounds)
    for note in read.notes:
        say(note)
    extraction: Extraction = SentenceBySentence() if by_sentence else WholeStory()
    asking = [question for question in read.questions if not question.rubric_aspects]
    requests = {name: request for q in asking for name, request in extraction.requests(q).items()}
    with ExitStack() as stack:
        author = stack.enter_context(Replies(generator, files.calls, decoding, skip_failed=limits.skip_failed, say=say))
        found = estimate(generator, len(requests), author.missing(requests), extraction.reply_tokens)
        say(found.line())
        if dry_run:
            return AspectsBuild(found)
        author.budget = stack.enter_context(Budget(files.spend, limits.max_cost_usd, spent_usd=author.cost_usd))
        refuse_estimate(found, author.budget)
        unfit = {name: _unfit(room) for name, r in requests.items() if (room := author.room(r.prompt) or 0) < 0}
        asked = {name: request for name, request in requests.items() if name not in unfit}
        replies = author.ask("aspects", asked) | unfit
        writer = Writer.of(generator, decoding, {extraction.prompt.name: extraction.prompt.digest})
        spent = Spent.of(total(author.used.values()))
        say(f"spent {author.budget.spending.words()}")
    found_aspects = {question.id: extraction.collect(question, replies) for question in asking}
    card = _card(read, found_aspects, writer, spent)
    kept = tuple(_with_aspects(q, found_aspects) for q in read.questions if not _is_rejected(q, found_aspects))
    _write(files, kept, _rejects(read.questions, found_aspects), card)
    return AspectsBuild(found, kept, card)


def _unfit(room: int) -> Rejection:
    return Rejection(f"question and narrative are {-room} tokens over the model's window")


def _is_rejected(question: Question, replies: Mapping[str, object]) -> bool:
    return isinstance(replies.get(question.id), Rejection)


def _with_aspects(question: Question, replies: Mapping[str, tuple[Aspect, ...] | Rejection]) -> Question:
    found = replies.get(question.id, question.rubric_aspects)
    return question.model_copy(update={"rubric_aspects": found})


def _rejects(questions: Iterable[Question], replies: Mapping[str, object]) -> list[dict[str, str]]:
    rows = []
    for question in questions:
        reply = replies.get(question.id)
        if isinstance(reply, Rejection):
            what = {"id": question.id, "user": question.user, "question": question.question}
            rows.append({**what, "stage": "aspects", **reply._asdict()})
    return rows


def _card(read: History, replies: Mapping[str, object], writer: Writer, spent: Spent) -> AspectsCard:
    reasons = [reply.reason for reply in replies.values() if isinstance(reply, Rejection)]
    return AspectsCard(
        source=read.source,
        users=read.users,
        posts=read.posts,
        left_out=read.left_out,
        questions=len(read.questions),
        kept=len(read.questions) - len(reasons),
        given=len(read.questions) - len(replies),
        rejected=count_reasons(reasons),
        writer=writer,
        spent=spent,
        notes=read.notes,
        version=__version__,
    )


def _write(files: AspectFiles, kept: Iterable[Question], rejects: Iterable[Any], card: AspectsCard) -> None:
    """The file of aspects comes last: when it is there, so is all that explains it."""
    lines = "".join(question.model_dump_json() + "\n" for question in kept)
    card = card.model_copy(update={"sha256": hashlib.sha256(lines.encode()).hexdigest()})
    write_whole(files.rejects, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rejects))
    write_whole(files.card, card.model_dump_json(indent=2) + "\n")
    write_whole(files.aspects, lines)


def _refuse_edited(files: AspectFiles) -> None:
    """Refuse to write over a file that was changed by hand."""
    if not (files.aspects.is_file() and files.card.is_file()):
        return
    hint = f"remove {files.card.name} to build anew"
    written = read_model(files.card, AspectsCard, raises=DataError, hint=hint).sha256
    if written and written != hashlib.sha256(read_bytes(files.aspects)).hexdigest():
        raise ConfigError(
            f"{str(files.aspects)!r} was edited since it was written, and would be written over",
            hint="go on with `prbench build pairs`, or build anew into another file with -o",
        )
