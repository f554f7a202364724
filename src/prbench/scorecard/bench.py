"""Bench on which models are run for a scorecard: suites loaded once, one folder per run, one call cache for all."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from prbench.calls import CallCache
from prbench.config import RunConfig
from prbench.data import Suite, load_pairs
from prbench.errors import ConfigError, did_you_mean
from prbench.files import slug
from prbench.models import Model
from prbench.results import RunFolder
from prbench.run import Evaluation, RecordProgress, Session, execute
from prbench.scorecard.config import ScorecardConfig, ScorecardModelConfig


class Bench(NamedTuple):
    """Resources that all rows share."""

    settings: ScorecardConfig
    suite: Suite
    """All of it: who is shown under `other` must not depend on the split."""
    generic: Suite | None
    out: Path
    quiet: bool = True

    def session(
        self,
        entry: ScorecardModelConfig,
        model: Model,
        suite: Suite,
        *,
        split: str | None,
        contexts: Sequence[str],
        by: Sequence[str] = (),
        limited: bool = True,
        hides: bool = False,
    ) -> Session:
        """A run of one model, resolved; nothing is asked yet."""
        config = RunConfig.of(
            suite=suite.record.name,
            split=split,
            model=entry.address,
            contexts=contexts,
            planner=entry.planner,
            by=tuple(by),
            seed=self.settings.seed,
            limit=(entry.limit or self.settings.limit) if limited else None,
            resamples=self.settings.resamples,
            options=entry.options,
        )
        return Session(config, model=model, suite=suite, address=entry.address, hides=hides)

    def run(self, session: Session, folder: Path) -> Evaluation:
        """Make the records that are missing; a finished run asks nothing."""
        with closing(CallCache()) as cache, RecordProgress(quiet=self.quiet) as progress:
            return execute(session, RunFolder(folder), cache=cache, listening=progress.listening)


def open_bench(settings: ScorecardConfig, out: Path, *, quiet: bool = True) -> Bench:
    """Load the suites and check that they have the splits, before any model is opened."""
    suite = load_pairs(settings.suite)
    _check_split(suite, settings.part, "--split")
    generic = None if settings.generic == "none" else load_pairs(settings.generic)
    if generic is not None:
        _check_split(generic, settings.generic_part, "--generic-split")
    return Bench(settings, suite, generic, out, quiet)


def folder_name(text: str) -> str:
    """A model's address as the name of a folder.

    Example:
        >>> folder_name("personal:models/user-bt")
        'personal_models_user-bt'
    """
    return slug(text, keep=".-")[-60:] or "model"


def _check_split(suite: Suite, split: str | None, option: str) -> None:
    known = suite.record.splits
    if split is not None and known and split not in known:
        raise ConfigError(
            f"suite {suite.record.name!r} has no split {split!r}", hint=f"{option}: {did_you_mean(split, known)}"
        )
