"""Check that axes and poles are not called by name where they should only show."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from prbench.audit.config import AuditConfig
from prbench.audit.corpus import Corpus
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence
from prbench.texts import words

_FEWEST_UNRELATED = 20
"""Fewest unrelated texts that can tell which words are everyday."""


@dataclass(frozen=True)
class Names:
    """Axes and poles are shown, never named."""

    settings: AuditConfig

    name = "names"

    def examine(self, corpus: Corpus) -> Finding:
        """Look for the names of axes and poles in posts and answers, but for everyday words."""
        usage = _Usage(corpus)
        names = {name: axis for axis, poles in corpus.axes.items() for name in (axis, *poles)}
        telling = {name: axis for name, axis in names.items() if not self._is_everyday(name, axis, usage)}
        figures = [
            Figure.counted(
                f"{kind} that name an axis or pole", len(usage.texts[kind]), usage.named(kind, telling), verdict
            )
            for kind, verdict in (("posts", CheckVerdict.FAIL), ("answers", CheckVerdict.WARN))
        ]
        return Finding.of(
            self.name,
            asks="are axes or poles called by the names they have in the tags?",
            threshold="a post fails, an answer warns; single words only if not listed as everyday and in less than "
            f"{100 * self.settings.everyday_share:g} % of unrelated texts",
            figures=figures if names else (),
        )

    def _is_everyday(self, name: str, axis: str, usage: "_Usage") -> bool:
        if len(words(name)) > 1:
            return False
        return (
            name.lower() in self.settings.everyday or usage.unrelated_share(name, axis) >= self.settings.everyday_share
        )


@dataclass(frozen=True)
class _Usage:
    """Words of the posts and answers."""

    corpus: Corpus

    @cached_property
    def texts(self) -> Mapping[str, Sequence[tuple[str, str, frozenset[str]]]]:
        """Posts and answers, each with its id, its words (padded) and the axes that concern it."""
        asked: dict[str, set[str]] = defaultdict(set)
        for contrast in self.corpus.contrasts:
            asked[contrast.question].update(contrast.axes)
        held = {user: set(stances) for user, stances in self.corpus.stances.items()}
        return {
            "posts": [
                (post.ids[0], _padded(post.text), frozenset().union(*(held.get(user, set()) for user in post.users)))
                for post in self.corpus.posts
            ],
            "answers": [(a.id, _padded(a.text), frozenset(asked[a.question])) for a in self.corpus.answers],
        }

    def unrelated_share(self, name: str, axis: str) -> float:
        """Return the share of the texts unrelated to the axis in which its name stands; 0 if there are too few."""
        texts = [text for texts in self.texts.values() for _, text, axes in texts if axis not in axes]
        if len(texts) < _FEWEST_UNRELATED:
            return 0.0
        return sum(_padded(name) in text for text in texts) / len(texts)

    def named(self, kind: str, names: Mapping[str, str]) -> list[Offence]:
        """The texts in which one of these names stands."""
        found = []
        for text_id, text, _ in self.texts[kind]:
            if used := [name for name in names if _padded(name) in text]:
                found.append(Offence(ids=(text_id,), detail=", ".join(repr(name) for name in used)))
        return found


def _padded(text: str) -> str:
    return f" {' '.join(words(re.sub(r'[_-]+', ' ', text)))} "
