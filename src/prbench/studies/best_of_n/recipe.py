"""Best-of-N, from the suite to `study.json`: read it from top to bottom.

Everything is in one folder and every stage continues where it stopped: candidates, scores of each reward model, grades,
curves. What cannot work (a model that compares instead of rating, a judge that shares weights with a ranked model or is
at chance) is refused before anything is spent on it.
"""

import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from prbench.calls import clock
from prbench.contexts import ContextBuilder
from prbench.data import Suite, load_pairs
from prbench.errors import ConfigError, RunError
from prbench.graders import RubricJudge, load_judge, require_able
from prbench.models import Generator, load_generator
from prbench.results.folder import RunFolder
from prbench.studies.best_of_n import candidates as drawing
from prbench.studies.best_of_n import grades as judging
from prbench.studies.best_of_n.candidates import Candidate
from prbench.studies.best_of_n.conclusion import Results, conclude, questions
from prbench.studies.best_of_n.contenders import Contender, call_up, refuse_shared, taught_alike, taught_alike_notice
from prbench.studies.best_of_n.grades import Exam, Graded, Judging, examine_judge
from prbench.studies.best_of_n.items import Item, select_items, split_pairs
from prbench.studies.best_of_n.outcome import BestOfCurves, Entered
from prbench.studies.best_of_n.scores import Place, score_candidates
from prbench.studies.best_of_n.settings import Settings
from prbench.types import Pair

Stage = Literal["candidates", "scores", "grades", "study"]
STAGES: tuple[Stage, ...] = get_args(Stage)
JUDGE = "judge.json"
SETTINGS = "settings.json"

_SAY_SECONDS = 10.0
_KNOWN = 20


def best_of_n(
    settings: Settings,
    out: Path,
    *,
    until: Stage = "study",
    suite: Suite | None = None,
    policy: Generator | None = None,
    judge: RubricJudge | None = None,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> BestOfCurves | None:
    """Make a best-of-N study, or continue one.

    Args:
        settings: What to do.
        out: Its folder.
        until: The last stage to go through.
        suite: Pairs in place of the suite that the settings name.
        policy: Who writes, in place of the settings' policy.
        judge: Who judges, in place of the settings' judge.
        say: Hears what is going on.

    Returns:
        What stands in `curves.json`; None where the study stopped at an earlier stage.
    """
    folder = RunFolder(out)
    with folder.locked():
        _keep_settings(folder, settings)
        everything = suite if suite is not None else load_pairs(settings.suite)
        pairs = split_pairs(everything, settings.split)
        judge = judge or _open_judge(settings, everything, needed=until in ("grades", "study"))
        asked = select_items(pairs, judge, limit=settings.limit, seed=settings.seed)
        items = asked.items
        for reason, count in asked.refused.items():
            say(f"items: {count:,} that the judge cannot grade are left out: {reason}")
        contenders = call_up(settings.models) if until != "candidates" else []
        exam = None
        alike: dict[str, str] = {}
        if judge is not None:
            refuse_shared(judge, contenders)
            alike = taught_alike(judge, contenders)
            if notice := taught_alike_notice(alike):
                say(notice)
            exam = _exam(folder, settings, judge, pairs, say) if until in ("grades", "study") else None

        drawn = _candidates(folder, settings, items, pairs, policy, say)
        if until == "candidates":
            return None
        scores = {
            contender.name: _scores(folder, settings, everything, contender, items, drawn, say)
            for contender in contenders
            if contender.context is not None
        }
        if judge is None or exam is None:
            return None
        graded = _grades(folder, judge, exam, items, drawn, say)
        if until == "grades":
            return None
        return conclude(folder, settings, everything, Results(asked, drawn, contenders, scores, graded, exam, alike))


def _keep_settings(folder: RunFolder, settings: Settings) -> None:
    """One folder, one choice of who writes what for whom; more items, models or another judge may come later."""
    file = folder.path / SETTINGS
    if file.exists():
        before = folder.read_model(SETTINGS, Settings).writing
        if changed := [key for key, value in settings.writing.items() if before[key] != value]:
            key = changed[0]
            raise RunError(
                f"{str(folder.path)!r} holds a study with {key} {before[key]!r}, not {settings.writing[key]!r}",
                hint="give this study a folder of its own with -o",
            )
    folder.write_json(SETTINGS, settings.model_dump(mode="json"))


def _open_judge(settings: Settings, everything: Suite, *, needed: bool) -> RubricJudge | None:
    if settings.judge:
        training = everything.filter(lambda pair: pair.tags.get("split") == "train", "split train")
        return load_judge(settings.judge, settings.judge_options, training=training)
    if needed:
        raise ConfigError(
            "no judge is named", hint="--judge stances:tfidf, lm:… or chat:…; or stop earlier with --until scores"
        )
    return None


def _candidates(
    folder: RunFolder,
    settings: Settings,
    items: Sequence[Item],
    pairs: Sequence[Pair],
    policy: Generator | None,
    say: Callable[[str], None],
) -> dict[str, list[Candidate]]:
    """The candidates of every item, drawn where they are missing."""
    if settings.candidates == "suite":
        own = drawing.suite_candidates(pairs, settings.seed)
        return {item.id: own[item.pair.question][: settings.n] for item in items}
    policy = policy or load_generator(settings.policy, settings.policy_options)
    places = {item.id: drawing.item_slots(item, settings, policy.card) for item in items}
    slots = {slot.key: slot for listed in places.values() for slot in listed}
    path = folder.path / drawing.FILE
    waiting = drawing.open_slots(slots, drawing.read_candidates(path))
    ticker = Ticker("candidates", say, sum(map(len, waiting.values())))
    found = drawing.draw_candidates(path, slots, policy, settings, lambda _: ticker.one_more())
    valid = sum(found[key].status == "ok" for key in slots)
    say(f"candidates: {valid:,} of {len(slots):,} valid, for {len(items):,} items of {questions(items):,} questions")
    return {item: [found[slot.key] for slot in listed] for item, listed in places.items()}


def _scores(
    folder: RunFolder,
    settings: Settings,
    everything: Suite,
    contender: Contender,
    items: Sequence[Item],
    candidates: Mapping[str, Sequence[Candidate]],
    say: Callable[[str], None],
) -> Entered:
    """One reward model's scores; it is let go before the next one is opened."""
    model = contender.load()
    assert contender.context is not None  # noqa: S101  (noised oracles are not opened)
    builder = ContextBuilder(everything, model, seed=settings.seed)
    ticker = Ticker(contender.name, say)
    path = folder.path / "scores" / f"{contender.slug}.jsonl"
    found = score_candidates(path, model, builder, contender.context, items, candidates, ticker.at)
    del model, builder
    gc.collect()
    missing = Counter(score.reason or score.status for score in found.values() if score.score is None)
    say(f"scores: {contender.name}: {len(found) - missing.total():,} of {len(found):,}")
    return Entered(
        contender.name,
        contender.card.address,
        str(contender.context),
        contender.apart,
        {place: score.score for place, score in found.items()},
        dict(missing),
        contender.card.revision,
    )


def _exam(
    folder: RunFolder, settings: Settings, judge: RubricJudge, pairs: Sequence[Pair], say: Callable[[str], None]
) -> Exam:
    """What the judge is worth; one at chance ends the study here."""
    known = folder.read_json(JUDGE) if (folder.path / JUDGE).exists() else None
    exam = examine_judge(judge, pairs, settings.judge_pairs, known, seed=settings.seed)
    folder.write_json(JUDGE, exam.model_dump(mode="json"))
    accuracy = exam.judge.accuracy
    ends = "" if accuracy.low is None or accuracy.high is None else f" [{accuracy.low:.3f}, {accuracy.high:.3f}]"
    say(
        f"judge {exam.judge.address}: {accuracy.value:.3f}{ends} of {accuracy.n:,} labelled pairs right, "
        f"guessing gives {exam.judge.chance:g}"
    )
    require_able(accuracy, exam.judge.chance, judge=exam.judge.address)
    return exam


def _grades(
    folder: RunFolder,
    judge: RubricJudge,
    exam: Exam,
    items: Sequence[Item],
    candidates: Mapping[str, Sequence[Candidate]],
    say: Callable[[str], None],
) -> dict[Place, Graded]:
    """Every candidate's grade for every user, with the budget said before the first call."""
    work = Judging(judge, items, candidates, folder.path / judging.FILE)
    budget = work.budget(exam)
    if budget.calls:
        say(
            f"judging: {budget.calls:,} calls, about {budget.tokens:,} tokens to read, about {clock(budget.seconds)} "
            "at the speed of its examination"
        )
    return work.grade(Ticker("judging", say).at)


class Ticker:
    """Says now and then how far a stage is."""

    def __init__(self, what: str, say: Callable[[str], None], total: int = 0) -> None:
        self._what, self._say, self._total = what, say, total
        self._done = 0
        self._began = self._said = time.monotonic()

    def one_more(self) -> None:
        """One more is done."""
        self.at(self._done + 1, self._total)

    def at(self, done: int, total: int) -> None:
        """So many of so many are done."""
        self._done = done
        now = time.monotonic()
        if now - self._said >= _SAY_SECONDS:
            self._said = now
            left = max(total - done, 0) * (now - self._began) / max(done, 1)
            known = f" · {clock(left)} left" if done >= _KNOWN else ""  # the first ones wait for the model to open
            self._say(f"{self._what}: {done:,}/{total:,}{known}")
