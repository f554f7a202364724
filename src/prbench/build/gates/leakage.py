"""Gate against answers that carry the profile: what a post says belongs to its user, and would tell who is asking."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prbench.build.draft import Draft
from prbench.build.gates.details import details, repeated
from prbench.build.gates.runs import Runs, quote
from prbench.types import Post

LEAST_ANSWER = 4
"""A whole answer with fewer words than this may stand in a post by chance."""


@dataclass(frozen=True)
class ProfileLeakage:
    """Gate against answers with `words_in_a_row` words of a post or the narrative, or a personal detail from one.

    Example:
        >>> draft = Draft(id="1", user="ann", question="A pet?", chosen="Rex will not mind a cat.",
        ...               rejected="Fish are easy.", profile=[{"id": "p1", "text": "Our old dog Rex sleeps all day."}])
        >>> ProfileLeakage().check([draft])
        {'1': "chosen repeats a personal detail of post 'p1': 'Rex'"}
    """

    words_in_a_row: int = 8

    name = "profile-leakage"

    @property
    def rule(self) -> str:
        """Rule of what passes."""
        return f"< {self.words_in_a_row} words of a post in a row, no personal detail"

    def check(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Look for runs of posts and for personal details in both answers."""
        by_profile: dict[tuple[Post, ...], list[Draft]] = {}
        for draft in drafts:
            by_profile.setdefault(draft.profile, []).append(draft)
        found: dict[str, str] = {}
        for posts, of_user in by_profile.items():
            found.update(self._of_user(posts, of_user))
        return found

    def _of_user(self, posts: Sequence[Post], drafts: Sequence[Draft]) -> Iterator[tuple[str, str]]:
        runs = Runs()
        own = _OwnWords({f"post {post.id!r}": post.text for post in posts}, runs, self.words_in_a_row)
        narratives = {
            text: _OwnWords({"the narrative": text}, runs, self.words_in_a_row)
            for text in dict.fromkeys(draft.narrative for draft in drafts)
        }
        for draft in drafts:
            for side, answer in (("chosen", draft.chosen), ("rejected", draft.rejected)):
                leaks = (words.leak(answer, draft.question) for words in (own, narratives[draft.narrative]))
                if leak := next(filter(None, leaks), None):
                    yield draft.id, f"{side} {leak}"
                    break


class _OwnWords:
    """Words of one user, by place; read once for all drafts that rest on them."""

    def __init__(self, texts: Mapping[str, str], runs: Runs, run: int) -> None:
        self._texts = texts
        self._run = run
        self._runs = runs
        self._index = self._runs.index(list(texts.values()), run)
        self._places = {detail: place for place, text in texts.items() for detail in details(text)}
        self._details = sorted(self._places)

    def leak(self, answer: str, question: str) -> str:
        """Return what an answer took from the user, if anything."""
        if detail := repeated(self._details, answer, question):
            return f"repeats a personal detail of {self._places[detail]}: {detail!r}"
        least = min(self._runs.shingles.length(answer), self._run)
        if least < LEAST_ANSWER:
            return ""
        index = self._index if least == self._run else self._runs.index(list(self._texts.values()), least)
        if self._runs.longest_of(index, answer, question, least) is None:
            return ""
        found = [(self._runs.longest([text], answer, question, least), place) for place, text in self._texts.items()]
        run, place = max(((run, place) for run, place in found if run), key=lambda one: one[0].length)
        limit = f"{self._run} are a copy" if run.length >= self._run else "the whole answer"
        return f"repeats {run.length} words of {place} in a row ({limit}): {quote(run.words)}"
