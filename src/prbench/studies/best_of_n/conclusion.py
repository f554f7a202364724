"""The files that a best-of-N study ends in; both follow from what is on disk, so the same rows give the same files."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from prbench._version import __version__
from prbench.data import Suite
from prbench.errors import StudyError
from prbench.files import exists, read_model
from prbench.results import RunFolder
from prbench.studies.best_of_n.candidates import EMPTY, Candidate
from prbench.studies.best_of_n.config import BestOfNConfig
from prbench.studies.best_of_n.grades import Exam, Graded
from prbench.studies.best_of_n.items import Selected, StudyItem
from prbench.studies.best_of_n.outcome import (
    BestOfCurves,
    CandidateCounts,
    CurvesDetails,
    Entered,
    World,
    common_lines,
    model_curve,
    model_outcome,
)
from prbench.studies.best_of_n.reward_models import RewardModel
from prbench.studies.best_of_n.scores import ItemCandidate, noised_scores
from prbench.studies.study import FILE as STUDY
from prbench.studies.study import Study, StudyEstimate
from prbench.texts import is_degenerate

CURVES = "curves.json"


class Results(NamedTuple):
    """Results of all stages."""

    selected: Selected
    candidates: Mapping[str, Sequence[Candidate]]
    """Candidates of each item."""
    reward_models: Sequence[RewardModel]
    scores: Mapping[str, Entered]
    """Scores by name of the reward model; noised oracles have theirs from the grades."""
    graded: Mapping[ItemCandidate, Graded]
    exam: Exam
    taught_alike: Mapping[str, str]
    """Ranked models that learnt from the judge's own training split, and which that is."""
    agreed: StudyEstimate | None = None
    """Share of two candidates that the judge orders as their instructions do, where they were written under poles."""

    @property
    def items(self) -> Sequence[StudyItem]:
        """Questions of the study's users."""
        return self.selected.items

    @property
    def grades(self) -> dict[ItemCandidate, float | None]:
        """Worth of each candidate to each user."""
        return {place: found.grade.score for place, found in self.graded.items()}


def conclude(folder: RunFolder, settings: BestOfNConfig, everything: Suite, results: Results) -> BestOfCurves:
    """Compute all curves and write `curves.json` and `study.json`."""
    world = _world(settings, results)
    entered = _entered(results, settings.seed)
    curves = {one.name: model_curve(world, one) for one in entered}
    outcomes = {one.name: model_outcome(world, one, curves[one.name]) for one in entered}
    found = BestOfCurves(
        kind="best-of-n",
        suite=everything.record.name,
        policy=settings.policy or "suite",
        candidates=settings.candidates,
        endpoint=f"best of {world.k}, mean aspect score from 0 to 2",
        judge=results.exam.judge,
        details=_details(
            settings, everything, results, world, [name for name, outcome in outcomes.items() if outcome is None]
        ),
        ks=tuple(range(1, world.n + 1)),
        lines=common_lines(world),
        models=curves,
    )
    written = found.model_dump(mode="json")
    study = {
        **{key: value for key, value in written.items() if key not in ("ks", "lines", "models")},
        "items": {item.id: {"unit": item.unit, "question": item.question} for item in results.items},
        "models": {name: outcome for name, outcome in outcomes.items() if outcome is not None},
    }
    Study.model_validate(study)
    folder.write_json(CURVES, written)
    folder.write_json(STUDY, study)
    return found


def read_curves(path: Path) -> BestOfCurves:
    """The curves of a finished study.

    Args:
        path: Its folder.
    """
    if not exists(path / CURVES, raises=StudyError):
        raise StudyError(f"{str(path)!r} has no {CURVES}", hint="was the study finished? run the same command again")
    hint = "the command that made the study writes it anew, without a call"
    return read_model(path / CURVES, BestOfCurves, raises=StudyError, hint=hint)


def questions(items: Sequence[StudyItem]) -> int:
    """Return the number of distinct questions."""
    return len({item.pair.question for item in items})


def _world(settings: BestOfNConfig, results: Results) -> World:
    valid = {item: [one.key for one in listed if one.status == "ok"] for item, listed in results.candidates.items()}
    n = settings.n if settings.candidates == "policy" else min(settings.n, max(map(len, valid.values())))
    k = min(settings.endpoint, n)
    return World(results.items, valid, results.grades, n, k, settings.seed, settings.resamples)


def _entered(results: Results, seed: int) -> list[Entered]:
    texts = {one.key: one.text for listed in results.candidates.values() for one in listed}
    grades = results.grades
    found = []
    for reward_model in results.reward_models:
        noise = reward_model.ranked.noise
        if noise is None:
            found.append(results.scores[reward_model.name])
        else:
            scores = noised_scores(grades, texts, noise, seed)
            found.append(Entered(reward_model.name, reward_model.ranked.address, "", True, scores, {}))
    return found


def _details(
    settings: BestOfNConfig, everything: Suite, results: Results, world: World, left_out: Iterable[str]
) -> CurvesDetails:
    reasons = Counter(found.grade.reason for found in results.graded.values() if found.grade.status != "ok")
    return CurvesDetails(
        prbench=__version__,
        n=world.n,
        k=world.k,
        settings=settings.model_dump(mode="json", exclude={"models"}),
        fingerprint=everything.record.fingerprint,
        items=len(results.items),
        questions=questions(results.items),
        candidates=_counts(results.candidates),
        items_refused=results.selected.refused,
        judge={"missing": dict(results.exam.missing), "ungraded": dict(sorted(reasons.items()))},
        taught_alike=dict(results.taught_alike),
        left_out=tuple(sorted(left_out)),
        agreed=results.agreed,
    )


def _counts(candidates: Mapping[str, Sequence[Candidate]]) -> CandidateCounts:
    """Return counts of the drawing, over distinct candidates and over items."""
    distinct = {one.key: one for listed in candidates.values() for one in listed}
    repeated = 0
    for listed in candidates.values():
        texts = [one.text for one in listed if one.status == "ok"]
        repeated += len(texts) - len(set(texts))
    return CandidateCounts(
        distinct=len(distinct),
        valid=sum(one.status == "ok" for one in distinct.values()),
        cut=sum(one.cut for one in distinct.values()),
        drawn_again=sum(one.attempt > 0 for one in distinct.values()),
        repeated_in_item=repeated,
        degenerate=sum(_says_nothing(one) for one in distinct.values()),
        styles=dict(sorted(Counter(one.style for one in distinct.values()).items())),
        reasons=dict(sorted(Counter(one.reason for one in distinct.values() if one.reason).items())),
    )


def _says_nothing(candidate: Candidate) -> bool:
    return candidate.reason == EMPTY if candidate.status != "ok" else is_degenerate(candidate.text)
