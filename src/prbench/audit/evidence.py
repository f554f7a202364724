"""Checks that profiles show what the standard says they show, and are long enough to show anything."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prbench.audit.config import AuditConfig
from prbench.audit.corpus import Corpus
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence

_SEPARATOR = re.compile(r"[,;\s]+")


@dataclass(frozen=True)
class StanceEvidence:
    """Every stance rests on posts that exist."""

    settings: AuditConfig

    name = "evidence"

    def examine(self, corpus: Corpus) -> Finding:
        """Follow the ids that rubric aspects give as evidence, where the suite's evidence is ids and not quotations."""
        least = self.settings.evidence_posts
        claims = list(claims_of(corpus))
        return Finding.of(
            self.name,
            asks="do the posts given as evidence exist in the user's profile, and are there enough for each stance?",
            threshold=f"every id exists, at least {least} posts for each aspect; only where evidence lists post ids",
            figures=self._figures(corpus, claims) if lists_ids(corpus, claims) else (),
        )

    def _figures(self, corpus: Corpus, claims: Sequence["AspectClaim"]) -> list[Figure]:
        lost, thin = [], []
        for claim in claims:
            missing = [post for post in claim.posts if post not in corpus.profiles[claim.user]]
            if missing:
                lost.append(Offence(ids=(claim.pair, *missing), detail=f"not in the profile of {claim.user}"))
            if len(set(claim.posts)) - len(set(missing)) < self.settings.evidence_posts:
                shown = ", ".join(claim.posts) or "none"
                thin.append(Offence(ids=(claim.pair,), detail=f"{claim.user}, “{claim.aspect}”: {shown}"))
        return [
            Figure.counted("aspects with evidence that does not exist", len(claims), lost),
            Figure.counted("aspects with too little evidence", len(claims), thin),
        ]


@dataclass(frozen=True)
class AspectClaim:
    """Claim of a rubric about one user: this aspect shows in these posts."""

    pair: str
    user: str
    aspect: str
    posts: tuple[str, ...]


def claims_of(corpus: Corpus) -> Iterator[AspectClaim]:
    """Each distinct aspect of each user, once."""
    seen = set()
    for pair in corpus.pairs:
        for aspect in pair.rubric_aspects:
            key = (pair.user, aspect.aspect, aspect.evidence)
            if key not in seen:
                seen.add(key)
                posts = tuple(filter(None, _SEPARATOR.split(aspect.evidence)))
                yield AspectClaim(pair.id, pair.user, aspect.aspect, posts)


def lists_ids(corpus: Corpus, claims: Sequence[AspectClaim]) -> bool:
    """Whether evidence means ids here: most of it is nothing but ids of posts, of any user."""
    known = {name for posts in corpus.profiles.values() for name in posts}
    given = [claim for claim in claims if claim.posts]
    return bool(given) and 2 * sum(known.issuperset(claim.posts) for claim in given) >= len(given)


@dataclass(frozen=True)
class ProfileLengths:
    """Profiles have enough posts, of a readable length."""

    settings: AuditConfig

    name = "profiles"

    def examine(self, corpus: Corpus) -> Finding:
        """Count posts of each user and words of each post."""
        settings = self.settings
        shortest, longest = settings.post_words
        profiles = {user: posts for user, posts in corpus.profiles.items() if posts}
        few = [
            Offence(ids=(user,), detail=f"{len(posts)} posts")
            for user, posts in profiles.items()
            if len(posts) < settings.profile_posts
        ]
        odd = [
            Offence(ids=(post.ids[0],), detail=f"{count} words")
            for post in corpus.posts
            if not shortest <= (count := len(post.text.split())) <= longest
        ]
        return Finding.of(
            self.name,
            asks="are profiles and posts of the size that was meant?",
            threshold=f"at least {settings.profile_posts} posts, {shortest} to {longest} words each: warn",
            figures=[
                Figure.counted("profiles with too few posts", len(profiles), few, CheckVerdict.WARN),
                Figure.counted("posts too short or too long", len(corpus.posts), odd, CheckVerdict.WARN),
            ],
        )
