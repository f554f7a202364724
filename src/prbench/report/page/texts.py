"""The words behind a run: what was asked, what was answered, what the model was shown.

They come from the suite, never from the run, and only if the suite at hand is, pair for pair, the one that was run.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from prbench.contexts import ContextBuilder, ShownPosts, Unfit
from prbench.data import Suite, load_pairs
from prbench.errors import PrbenchError
from prbench.models import load_model
from prbench.report.page.evidence import ReportedRun, ReportEvidence
from prbench.results import MadeRecord
from prbench.types import Context, Pair, Post


class Texts(NamedTuple):
    """The pairs themselves, as far as they can be had."""

    pairs: Mapping[str, Pair]
    """Those that the page lists."""
    suites: Mapping[str, Suite]
    """Suites by run folder, for those whose suite was found."""
    problems: tuple[str, ...]
    """Reasons why some or all texts are missing, in words for the page."""


def load_texts(evidence: ReportEvidence) -> Texts:
    """Load each run's suite and check it against the run; what does not match is left out and said."""
    pairs: dict[str, Pair] = {}
    suites: dict[str, Suite] = {}
    problems: dict[str, None] = {}
    loaded: dict[str, Suite | str] = {}
    shown = {row.id for row in evidence.shown}
    for entry in evidence.entries:
        key = repr((entry.config.suite, sorted(entry.config.columns.items()), entry.config.revision))
        if key not in loaded:
            loaded[key] = _load(entry)
        part = _matching(entry, loaded[key])
        if isinstance(part, str):
            problems[part] = None
        else:
            new = shown - pairs.keys()
            pairs.update({id: part[place] for place, id in enumerate(part.column("id")) if id in new} if new else {})
            suites[str(entry.path)] = loaded[key]  # type: ignore[assignment]  # a matching suite is one
    return Texts(pairs, suites, tuple(problems))


def _load(entry: ReportedRun) -> Suite | str:
    config = entry.config
    try:
        return load_pairs(config.suite, columns=config.columns or None, revision=config.revision)
    except PrbenchError as error:
        return f"The suite {config.suite!r} cannot be read here ({error.message})."


def _matching(entry: ReportedRun, suite: Suite | str) -> Suite | str:
    """The run's part of a suite, or why it is not the one of the run."""
    if isinstance(suite, str):
        return suite
    part = suite.keep((id in entry.rows.place for id in suite.column("id")), "of the run")
    wanted = entry.facts.dataset.fingerprint
    if (here := part.record.fingerprint) != wanted:
        return (
            f"The suite {entry.config.suite!r} found here (fingerprint {here[:12]}) is not the one of the run "
            f"{entry.path.name!r} ({wanted[:12]})."
        )
    return part


class Reconstruction:
    """Finds again what models were shown: the context's posts, from the suite; what was dropped, from the record.

    Args:
        suite: The whole suite.
        seed: Seed of the runs.
        ranker: Of the runs; other rankers than BM25 are not asked again.
    """

    def __init__(self, suite: Sequence[Pair], seed: int, ranker: str) -> None:
        self._ranker = ranker
        # A model without a window: nothing is dropped here, the record says what was.
        self._builder = ContextBuilder(suite, load_model("longer"), seed=seed)
        self._known: dict[tuple[str, str], ShownPosts | None] = {}

    def shown(self, pair: Pair, record: MadeRecord) -> ShownPosts | None:
        """The posts that stood to choose from, or None where the record does not bear them out."""
        key = (pair.id, record.context)
        if key not in self._known:
            self._known[key] = self._posts(pair, Context.parse(record.context))
        found = self._known[key]
        return found if found is not None and _borne_out(found, record) else None

    def _posts(self, pair: Pair, context: Context) -> ShownPosts | None:
        if context.name == "retrieved" and self._ranker != "bm25":
            return None
        try:
            found = self._builder.show(pair, Context("profile") if context.name == "profile+plan" else context)
        except PrbenchError:
            return None
        if isinstance(found, Unfit):
            return ShownPosts(pair.user, ()) if context.name == "plan" else None
        return ShownPosts(found.view.user, found.view.posts)


class Reconstructions:
    """One reconstruction for all runs that were shown alike."""

    def __init__(self, texts: Texts) -> None:
        self._suites = texts.suites
        self._made: dict[tuple[int, int, str], Reconstruction] = {}

    def of(self, entry: ReportedRun) -> Reconstruction | None:
        """Return the reconstruction of a run; None where its suite is not at hand."""
        suite = self._suites.get(str(entry.path))
        if suite is None:
            return None
        key = (id(suite), entry.config.seed, entry.config.ranker)
        if key not in self._made:
            self._made[key] = Reconstruction(suite, entry.config.seed, entry.config.ranker)
        return self._made[key]


def _borne_out(found: ShownPosts, record: MadeRecord) -> bool:
    ids = {post.id for post in found.posts}
    fits = record.posts + len(record.dropped) == len(found.posts) and ids.issuperset(record.dropped)
    return fits and found.user == record.shown_user


def dropped_positions(posts: Sequence[Post], dropped: Sequence[str]) -> Iterator[int]:
    """Yield the places of the posts that were left out among all."""
    missing = set(dropped)
    return (position for position, post in enumerate(posts) if post.id in missing)
