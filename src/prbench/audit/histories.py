"""Checks that histories do not tell by their length what they should tell by their words.

The number of posts and how long they are must not go with a pole; and where evidence names the posts that show a
stance, these should not be told from the silent ones by their length alone. A difference favours no answer, since both
halves of a couple meet the same two; it is a cue that a model can lean on in place of reading, so it warns.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from prbench.audit.config import AuditConfig
from prbench.audit.corpus import Corpus
from prbench.audit.evidence import claims_of, lists_ids
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence
from prbench.stats import Clusters, mean_interval


@dataclass(frozen=True)
class Histories:
    """The two halves of a couple write as much as each other, and silent posts are as long as those that show."""

    settings: AuditConfig

    name = "histories"

    def examine(self, corpus: Corpus) -> Finding:
        """Compare the halves of couples by axis, and posts that are evidence with posts that are not."""
        couples = _couples(corpus)
        uneven = [
            Offence(ids=halves, detail=" and ".join(f"{len(corpus.profiles[user])} posts" for user in halves))
            for halves in couples
            if len({len(corpus.profiles[user]) for user in halves}) > 1
        ]
        figures = [
            Figure.counted(
                "couples whose halves have unlike numbers of posts", len(couples), uneven, CheckVerdict.WARN
            ),
            *self._by_axis(corpus, couples),
            *self._silent(corpus),
        ]
        return Finding.of(
            self.name,
            asks="do the number and length of posts go with a pole, or with whether a post shows anything?",
            threshold=f"unlike numbers of posts in a couple, or a standardised difference in words > "
            f"{self.settings.style_warn:g} whose interval excludes 0: warn",
            figures=figures if any(corpus.profiles.values()) else (),
        )

    def _by_axis(self, corpus: Corpus, couples: Sequence[tuple[str, str]]) -> Iterator[Figure]:
        """Yield for each axis the words of a post at one pole less those at the other, couple by couple."""
        means = {user: _mean_words(posts.values()) for user, posts in corpus.profiles.items() if posts}
        for axis in corpus.two_sided:
            one, two = corpus.axes[axis]
            at = {user: held[axis] for user, held in corpus.stances.items() if axis in held}
            sides = [
                halves if one in at[halves[0]] else halves[::-1]
                for halves in couples
                if all(user in at and user in means for user in halves) and at[halves[0]] != at[halves[1]]
            ]
            if len(sides) > 1:
                first, second = (np.array([means[side[half]] for side in sides]) for half in (0, 1))
                name = f"{axis}: words of a post ({one} {first.mean():.0f}, {two} {second.mean():.0f})"
                figure = self._difference(name, first - second, [*first, *second], [side[0] for side in sides])
                if self.settings.is_exempt(axis, "words"):  # who likes it brief is brief
                    figure = figure.model_copy(update={"name": f"{name}; exempt", "verdict": CheckVerdict.PASS})
                yield figure

    def _silent(self, corpus: Corpus) -> Iterator[Figure]:
        """The words of a user's posts that are evidence of something, less those of their silent posts."""
        claims = list(claims_of(corpus))
        if not lists_ids(corpus, claims):
            return
        shown = {(claim.user, post) for claim in claims for post in claim.posts}
        rows = []
        for user, posts in corpus.profiles.items():
            loud = [text for post, text in posts.items() if (user, post) in shown]
            silent = [text for post, text in posts.items() if (user, post) not in shown]
            if loud and silent:
                rows.append((user, _mean_words(loud), _mean_words(silent)))
        if len(rows) > 1:
            users = [user for user, *_ in rows]
            loud_words, silent_words = (np.array(column) for column in list(zip(*rows, strict=True))[1:])
            lengths = [len(post.text.split()) for post in corpus.posts]
            name = f"words of posts that show a stance ({loud_words.mean():.0f}) or nothing ({silent_words.mean():.0f})"
            yield self._difference(name, loud_words - silent_words, lengths, users)

    def _difference(self, name: str, gap: np.ndarray, spread: Sequence[float], units: Sequence[str]) -> Figure:
        """A mean difference over the standard deviation of what was compared."""
        estimate = mean_interval(
            gap / (float(np.std(spread)) or 1.0), Clusters.of(units, units), np.random.default_rng(self.settings.seed)
        )
        value, low, high = estimate.value or 0.0, estimate.low, estimate.high
        clear = low is not None and high is not None and (low > 0 or high < 0)
        return Figure.estimated(
            name, estimate, CheckVerdict.WARN if clear and abs(value) > self.settings.style_warn else CheckVerdict.PASS
        )


def _couples(corpus: Corpus) -> list[tuple[str, str]]:
    """The two users of each couple."""
    found: dict[str, set[str]] = {}
    for pair in corpus.pairs:
        if couple := pair.tags.get("couple"):
            found.setdefault(couple, set()).add(pair.user)
    return [(min(users), max(users)) for users in found.values() if len(users) == 2]


def _mean_words(texts: Iterable[str]) -> float:
    return float(np.mean([len(text.split()) for text in texts]))
