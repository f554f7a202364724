"""Checks for texts that give the label away: the standard in posts or answers, answers or questions in a profile.

A copy is looked for only where it would help: the standard, answers and questions of a user's pairs in that user's
posts, the standard of a question in its answers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prbench.audit.config import AuditConfig
from prbench.audit.corpus import Corpus
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence
from prbench.texts import copies, sentences
from prbench.types import Pair


class _Secret(NamedTuple):
    """Texts of a pair that must not stand elsewhere."""

    name: str
    texts: Callable[[Pair], Iterable[str]]
    run: int
    """Number of words in a row that make a copy."""
    least: int
    """Number of words that make a copy if they are the whole text."""


@dataclass(frozen=True)
class StandardLeaks:
    """The hidden standard stands in no text that a model may see."""

    settings: AuditConfig

    name = "standard"

    def examine(self, corpus: Corpus) -> Finding:
        """Look for aspect titles, reasons and narrative sentences in posts and answers."""
        run, least = self.settings.copied_words, self.settings.title_words
        # Where answers were written to the rubric, as the paper's were, they may repeat a phrase of it.
        in_answers = CheckVerdict.FAIL if corpus.mirrored else CheckVerdict.WARN
        figures = []
        for secret in (_Secret("aspect titles", _titles, run, least), _Secret("reasons, narratives", _prose, run, run)):
            figures += [_in_posts(corpus, secret), _in_answers(corpus, secret, in_answers)]
        return Finding.of(
            self.name,
            asks="are rubric titles, reasons or narrative sentences copied into posts or answers?",
            threshold=f"{run} words in a row, or a whole title of at least {least}: fail (in answers of suites "
            "that are not mirrored: warn)",
            figures=figures,
        )


@dataclass(frozen=True)
class ProfileLeaks:
    """A profile holds none of the answers and questions that its user meets."""

    settings: AuditConfig

    name = "profile leaks"

    def examine(self, corpus: Corpus) -> Finding:
        """Look for answers and questions in posts."""
        settings = self.settings
        least = settings.title_words
        answers = _Secret("answers", lambda pair: (pair.chosen, pair.rejected), settings.answer_words, least)
        questions = _Secret("questions", lambda pair: (pair.question,), settings.copied_words, least)
        return Finding.of(
            self.name,
            asks="does a profile hold an answer or a question of its user's pairs?",
            threshold=f"{answers.run} words of an answer or {questions.run} of a question in a row, "
            f"or the whole of a shorter one of at least {least}: fail",
            figures=[_in_posts(corpus, secret) for secret in (answers, questions)],
        )


def _titles(pair: Pair) -> list[str]:
    return [aspect.aspect for aspect in pair.rubric_aspects]


def _prose(pair: Pair) -> list[str]:
    return [*(aspect.reason for aspect in pair.rubric_aspects), *sentences(pair.narrative)]


def _in_posts(corpus: Corpus, secret: _Secret) -> Figure:
    """Return the copies from a user's pairs in the user's posts."""
    by_user = _gather(corpus.pairs, lambda pair: pair.user, secret)
    found: dict[tuple[str, str], Offence] = {}
    for user, sources in by_user.items():
        for example in _copies(corpus, secret, sources, corpus.profiles[user]):
            found.setdefault((example.ids[0], example.detail), example)
    looked = sum(len(sources) for user, sources in by_user.items() if corpus.profiles[user])
    return Figure.counted(f"{secret.name} in posts of the user", looked, list(found.values()), corpus.written)


def _in_answers(corpus: Corpus, secret: _Secret, otherwise: CheckVerdict) -> Figure:
    """Return the copies from a question's pairs in its answers."""
    by_question = _gather(corpus.pairs, lambda pair: pair.question, secret)
    answers: dict[str, dict[str, str]] = {question: {} for question in by_question}
    for answer in corpus.answers:
        answers[answer.question][answer.id] = answer.text
    found = [
        example
        for question, sources in by_question.items()
        for example in _copies(corpus, secret, sources, answers[question])
    ]
    looked = sum(map(len, by_question.values()))
    return Figure.counted(f"{secret.name} in answers to the question", looked, found, otherwise)


def _gather(pairs: Sequence[Pair], key: Callable[[Pair], str], secret: _Secret) -> Mapping[str, Mapping[str, str]]:
    """Return the distinct texts by key, each with the first pair that has it."""
    found: dict[str, dict[str, str]] = {}
    for pair in pairs:
        group = found.setdefault(key(pair), {})
        for text in secret.texts(pair):
            group.setdefault(text, pair.id)
    return found


def _copies(
    corpus: Corpus, secret: _Secret, sources: Mapping[str, str], targets: Mapping[str, str]
) -> Iterable[Offence]:
    """Copies of sources (text → pair) in targets (id → text)."""
    pairs, names = list(sources.values()), list(targets)
    found = copies(list(sources), list(targets.values()), corpus.shingles, run=secret.run, least=secret.least)
    return [Offence(ids=(names[copy.target], pairs[copy.source]), detail=f"“{copy.words}”") for copy in found]
