"""Best-of-N, from the suite to `study.json`: read it from top to bottom.

Everything is in one folder and every stage continues where it stopped: candidates, scores of each reward model, grades,
curves. What cannot work (a model that compares instead of rating, a judge that shares weights with a ranked model or is
at chance) is refused before anything is spent on it.
"""

import gc
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, cast, get_args

from prbench.calls import SPEND_FILE, Budget, ProgressLine, clock
from prbench.contexts import ContextBuilder
from prbench.data import Suite, load_pairs
from prbench.errors import ConfigError, RunError, StudyError
from prbench.graders import RubricJudge, load_judge, require_able
from prbench.models import Generator, Rater, is_ranker, load_generator
from prbench.results import RunFolder
from prbench.studies.best_of_n import candidates as drawing
from prbench.studies.best_of_n import grades as judging
from prbench.studies.best_of_n.candidates import Candidate
from prbench.studies.best_of_n.conclusion import Results, conclude, questions
from prbench.studies.best_of_n.config import BestOfNConfig
from prbench.studies.best_of_n.grades import Exam, Graded, Judging, examine_judge
from prbench.studies.best_of_n.instructed import instructed_exam, instructed_grades, truths_agree
from prbench.studies.best_of_n.items import StudyItem, select_items, split_pairs
from prbench.studies.best_of_n.lists import rank_candidates
from prbench.studies.best_of_n.outcome import BestOfCurves, Entered
from prbench.studies.best_of_n.reward_models import (
    RewardModel,
    open_reward_models,
    refuse_shared,
    told_alike,
)
from prbench.studies.best_of_n.scores import ItemCandidate, score_candidates
from prbench.types import Context, Pair

Stage = Literal["candidates", "scores", "grades", "study"]
STAGES: tuple[Stage, ...] = get_args(Stage)
JUDGE = "judge.json"
SETTINGS = "settings.json"


def best_of_n(
    settings: BestOfNConfig,
    out: Path,
    *,
    until: Stage = "study",
    suite: Suite | None = None,
    policy: Generator | None = None,
    judge: RubricJudge | None = None,
    max_cost_usd: float | None = None,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> BestOfCurves | None:
    """Make a best-of-N study, or continue one.

    Args:
        settings: Settings of the study.
        out: Its folder.
        until: The last stage to go through.
        suite: Pairs in place of the suite that the settings name.
        policy: Who writes, in place of the settings' policy.
        judge: Who judges, in place of the settings' judge.
        max_cost_usd: Stop, resumably, once the study has cost as much: policy, reward models and judge together.
        say: Hears what is going on.

    Returns:
        What stands in `curves.json`; None where the study stopped at an earlier stage.
    """
    folder = RunFolder(out)
    with folder.locked(), study_budget(folder, max_cost_usd) as budget:
        _keep_settings(folder, settings)
        everything = suite if suite is not None else load_pairs(settings.suite)
        judge = judge or _open_judge(settings, everything, needed=until in ("grades", "study"))
        study = _Study(folder, settings, everything, judge, budget, say)
        found = study.make(until, policy)
        if budget.spent_usd:
            say(f"spent {budget.spending.words()}")
        return found


def study_budget(folder: RunFolder, max_cost_usd: float | None) -> Budget:
    """Open the budget of a study: its cost over all its starts, and its limit."""
    grades = {graded.key: graded.grade for graded in judging.read_grades(folder.path / judging.FILE).values()}
    spent = sum(grade.cost_usd for grade in grades.values())
    return Budget(folder.path / SPEND_FILE, max_cost_usd, spent_usd=spent)


class _Study:
    """One study: what stays the same over its stages."""

    def __init__(
        self,
        folder: RunFolder,
        settings: BestOfNConfig,
        everything: Suite,
        judge: RubricJudge | None,
        budget: Budget,
        say: Callable[[str], None],
    ) -> None:
        self._folder, self._settings, self._everything = folder, settings, everything
        self._judge, self._budget, self._say = judge, budget, say
        self._pairs = split_pairs(everything, settings.split)

    def make(self, until: Stage, policy: Generator | None) -> BestOfCurves | None:
        """Go through the stages, up to the last one that is wanted."""
        asked = select_items(self._pairs, self._judge, limit=self._settings.limit, seed=self._settings.seed)
        for reason, count in asked.refused.items():
            self._say(f"items: {count:,} that the judge cannot grade are left out: {reason}")
        reward_models = open_reward_models(self._settings.models, self._settings.n) if until != "candidates" else []
        alike = self._refuse_related(reward_models)
        exam = self._exam() if self._judge is not None and until in ("grades", "study") else None
        drawn = self._candidates(asked.items, policy)
        if until == "candidates":
            return None
        scores = {
            model.name: self._scores(model, model.context, asked.items, drawn)
            for model in reward_models
            if model.context is not None
        }
        if self._judge is None or exam is None:
            return None
        graded = self._grades(self._judge, exam, asked.items, drawn)
        if until == "grades":
            return None
        agreed = truths_agree(asked.items, drawn, graded, seed=self._settings.seed) if self._settings.poles else None
        if self._settings.truth == "instructed":
            if agreed is None:
                raise StudyError(
                    "no two candidates of an item were written for different poles", hint="take --n 2 or more"
                )
            graded, exam = instructed_grades(asked.items, drawn), instructed_exam(agreed, exam)
        results = Results(asked, drawn, reward_models, scores, graded, exam, alike, agreed)
        return conclude(self._folder, self._settings, self._everything, results)

    def _refuse_related(self, reward_models: Sequence[RewardModel]) -> dict[str, str]:
        """Refuse a judge that shares weights with a ranked model; returns the models that were taught as it was."""
        if self._judge is None:
            return {}
        refuse_shared(self._judge, reward_models)
        return told_alike(self._judge, reward_models, self._settings.reserve, self._say)

    def _exam(self) -> Exam:
        assert self._judge is not None  # noqa: S101  (asked for only with a judge)
        settings = self._settings
        with self._budget.metering("the judge's examination"):
            return examined(self._folder, self._judge, self._pairs, settings.judge_pairs, settings.seed, self._say)

    def _candidates(self, items: Sequence[StudyItem], policy: Generator | None) -> dict[str, list[Candidate]]:
        """The candidates of every item, drawn where they are missing."""
        settings = self._settings
        if settings.candidates == "suite":
            own = drawing.suite_candidates(self._pairs, settings.seed)
            return {item.id: own[item.pair.question][: settings.n] for item in items}
        policy = policy or load_generator(settings.policy, settings.policy_options)
        places = {item.id: drawing.item_slots(item, settings, policy.card) for item in items}
        slots = {slot.key: slot for listed in places.values() for slot in listed}
        path = self._folder.path / drawing.FILE
        waiting = drawing.open_slots(slots, drawing.read_candidates(path))
        line = ProgressLine("candidates", self._say, sum(map(len, waiting.values())))
        found = drawing.draw_candidates(path, slots, policy, settings, lambda _: line.one_more(), self._budget)
        valid = sum(found[key].status == "ok" for key in slots)
        self._say(
            f"candidates: {valid:,} of {len(slots):,} valid, for {len(items):,} items of {questions(items):,} questions"
        )
        return {item: [found[slot.key] for slot in listed] for item, listed in places.items()}

    def _scores(
        self,
        reward_model: RewardModel,
        context: Context,
        items: Sequence[StudyItem],
        candidates: Mapping[str, Sequence[Candidate]],
    ) -> Entered:
        """One reward model's scores; it is let go before the next one is opened."""
        model = reward_model.load()
        builder = ContextBuilder(self._everything, model, seed=self._settings.seed)
        line = ProgressLine(reward_model.name, self._say)
        path = self._folder.path / "scores" / f"{reward_model.slug}.jsonl"
        asked = (builder, context, items, candidates, line.at, self._budget)
        found = (
            rank_candidates(path, model, *asked)
            if is_ranker(model)
            else score_candidates(path, cast(Rater, model), *asked)
        )
        del model, builder
        gc.collect()
        missing = Counter(score.reason or score.status for score in found.values() if score.score is None)
        self._say(f"scores: {reward_model.name}: {len(found) - missing.total():,} of {len(found):,}")
        return Entered(
            reward_model.name,
            reward_model.card.address,
            str(context),
            reward_model.apart,
            {place: score.score for place, score in found.items()},
            dict(missing),
            reward_model.card.revision,
            reward_model.ranked.lineage,
        )

    def _grades(
        self, judge: RubricJudge, exam: Exam, items: Sequence[StudyItem], candidates: Mapping[str, Sequence[Candidate]]
    ) -> dict[ItemCandidate, Graded]:
        """Every candidate's grade for every user, with what it takes said before the first call."""
        work = Judging(judge, items, candidates, self._folder.path / judging.FILE)
        open_calls = work.estimate(exam)
        if open_calls.calls:
            self._say(
                f"judging: {open_calls.calls:,} calls, about {open_calls.tokens:,} tokens to read, about "
                f"{clock(open_calls.seconds)} at the speed of its examination"
            )
        return work.grade(ProgressLine("judging", self._say).at, self._budget)


def _keep_settings(folder: RunFolder, settings: BestOfNConfig) -> None:
    """One folder, one choice of who writes what for whom; more items, models or another judge may come later."""
    file = folder.path / SETTINGS
    if file.exists():
        before = folder.read_model(SETTINGS, BestOfNConfig).writing
        if changed := [key for key, value in settings.writing.items() if before[key] != value]:
            key = changed[0]
            raise RunError(
                f"{str(folder.path)!r} holds a study with {key} {before[key]!r}, not {settings.writing[key]!r}",
                hint="give this study a folder of its own with -o",
            )
    folder.write_json(SETTINGS, settings.model_dump(mode="json"))


def _open_judge(settings: BestOfNConfig, everything: Suite, *, needed: bool) -> RubricJudge | None:
    if settings.judge:
        training = everything.filter(lambda pair: pair.tags.get("split") == "train", "split train")
        return load_judge(settings.judge, settings.judge_options, training=training, reserve=settings.reserve)
    if needed:
        raise ConfigError(
            "no judge is named", hint="--judge stances:tfidf, lm:… or chat:…; or stop earlier with --until scores"
        )
    return None


def examined(
    folder: RunFolder,
    judge: RubricJudge,
    pairs: Sequence[Pair],
    limit: int,
    seed: int,
    say: Callable[[str], None],
) -> Exam:
    """Examine the judge; one at chance ends the study here."""
    known = folder.read_json(JUDGE) if (folder.path / JUDGE).exists() else None
    exam = examine_judge(judge, pairs, limit, known, seed=seed)
    folder.write_json(JUDGE, exam.model_dump(mode="json"))
    accuracy = exam.judge.accuracy
    ends = "" if accuracy.low is None or accuracy.high is None else f" [{accuracy.low:.3f}, {accuracy.high:.3f}]"
    say(
        f"judge {exam.judge.address}: {accuracy.value:.3f}{ends} of {accuracy.n:,} labelled pairs right, "
        f"guessing gives {exam.judge.chance:g}"
    )
    require_able(accuracy, exam.judge.chance, judge=exam.judge.address)
    return exam
