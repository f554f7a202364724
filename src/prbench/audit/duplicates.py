"""Checks for texts that are there twice, or nearly: answers, sentences of answers to one question, posts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prbench.audit.config import AuditConfig
from prbench.audit.corpus import Corpus
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence
from prbench.texts import near_duplicates, sentences, words


@dataclass(frozen=True)
class RepeatedTexts:
    """Check that no answer and no post is written twice."""

    settings: AuditConfig

    name = "duplicates"

    def examine(self, corpus: Corpus) -> Finding:
        """Compare all answers with each other, and all posts."""
        settings = self.settings
        answers = [(answer.id, answer.text) for answer in corpus.answers]
        posts = [(post.ids[0], post.text) for post in corpus.posts]
        return Finding.of(
            self.name,
            asks="are two answers, or two posts, nearly the same text, or a post there for several users?",
            threshold=f"Jaccard similarity of word 5-grams from {settings.near_warn:g} warns, "
            f"from {settings.near_fail:g} fails; posts shared between users fail (items of a log only warn)",
            figures=[
                *self._near(corpus, "answers", answers),
                *self._near(corpus, "posts", posts),
                _shared_posts(corpus),
            ],
        )

    def _near(self, corpus: Corpus, kind: str, texts: Sequence[tuple[str, str]]) -> Iterable[Figure]:
        settings = self.settings
        found = near_duplicates([text for _, text in texts], settings.near_warn, corpus.shingles)
        same: list[Offence] = []
        close: list[Offence] = []
        for near in found:
            ids = (texts[near.first][0], texts[near.second][0])
            (same if near.similarity >= settings.near_fail else close).append(
                Offence(ids=ids, detail=f"similarity {near.similarity:.2f}")
            )
        yield Figure.counted(f"{kind} that are nearly the same", len(texts), same, corpus.written)
        yield Figure.counted(f"{kind} that are rather alike", len(texts), close, CheckVerdict.WARN)


def _shared_posts(corpus: Corpus) -> Figure:
    """Posts of the same words under several users, or under several ids of one."""
    holders: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for user, posts in corpus.profiles.items():
        for name, text in posts.items():
            holders[" ".join(text.lower().split())].add((user, name))
    shared = [
        Offence(
            ids=tuple(name for _, name in sorted(held)), detail="of " + ", ".join(sorted({user for user, _ in held}))
        )
        for held in holders.values()
        if len(held) > 1
    ]
    return Figure.counted("posts that stand more than once", len(holders), shared, corpus.written)


@dataclass(frozen=True)
class SharedSentences:
    """Answers to one question are each written afresh."""

    settings: AuditConfig

    name = "sentences"

    def examine(self, corpus: Corpus) -> Finding:
        """Look for a sentence that two answers to one question have in common."""
        least = self.settings.sentence_words
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for answer in corpus.answers:
            for sentence in {" ".join(words(sentence)) for sentence in sentences(answer.text)}:
                if len(sentence.split()) >= least:
                    found[answer.question, sentence].append(answer.id)
        shared = [
            Offence(ids=tuple(ids), detail=f"“{sentence}”") for (_, sentence), ids in found.items() if len(ids) > 1
        ]
        otherwise = corpus.written if corpus.mirrored else CheckVerdict.WARN
        return Finding.of(
            self.name,
            asks="do two answers to one question share a sentence?",
            threshold=f"a sentence of {least} words or more; fails on mirrored suites, warns on others",
            figures=[Figure.counted("sentences shared within a question", len(found), shared, otherwise)],
        )
