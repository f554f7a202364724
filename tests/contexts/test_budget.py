"""Fitting posts into a window by added-up lengths chooses what measuring every prompt whole chooses."""

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest

from prbench.contexts.budget import FittedView, PromptBudget, Unfit, render_all
from prbench.errors import DataError
from prbench.models.protocols import Model, Windowed
from prbench.models.python import wrap
from prbench.rank import BM25, PostRanker
from prbench.types import AnswerView, Message, PairView, Post, Prompt
from tiny_models import CHAT_TEMPLATE, CORPUS, pair_tokenizer, tokenizer


class MeasuredWhole:
    """The way before: every try is measured whole. Slow, and right by construction."""

    def __init__(self, model: Model, ranker: PostRanker) -> None:
        known = isinstance(model, Windowed) and model.window is not None
        self._model = model
        self._ranker = ranker
        self._length: Callable[[Prompt], int] = cast(Windowed, model).length if known else lambda prompt: 0
        self._window = cast(int, cast(Windowed, model).window) if known else sys.maxsize
        self._posts: dict[str, int] = {}

    def fit(self, view: PairView) -> FittedView | Unfit:
        """Drop posts until the view fits, keeping at least one and the original order."""
        if self._window == sys.maxsize or self._fits(view):
            return FittedView(view, ())
        if not view.posts:
            over = self._whole(view) - self._window
            return Unfit(f"question and answer alone are {over} tokens over the window of {self._window}")
        kept = self._chosen(view)
        if not kept:
            return Unfit(f"not even one of {len(view.posts)} posts fits the window of {self._window} tokens")
        shown = _showing(view, kept)
        return FittedView(shown, tuple(post.id for post in view.posts if post not in set(kept)))

    def _chosen(self, view: PairView) -> list[Post]:
        """The most relevant posts that fit together: first by added lengths, then as measured whole."""
        ranked = self._ranker.rank(view.question, view.posts)
        room = self._window - self._whole(replace(view, posts=()))
        kept: list[Post] = []
        for post in ranked:
            cost = self._post(post, view)
            if cost <= room:
                kept.append(post)
                room -= cost
        while kept and not self._fits(_showing(view, kept)):
            kept.pop()
        misses = 0
        for post in ranked:
            if post not in kept and misses < 3:
                fits = self._fits(_showing(view, [*kept, post]))
                kept, misses = ([*kept, post], 0) if fits else (kept, misses + 1)
        return kept

    def _fits(self, view: PairView) -> bool:
        return self._whole(view) <= self._window

    def _whole(self, view: PairView) -> int:
        """Tokens of the longest prompt of this view, measured whole."""
        return max(self._length(prompt) for prompt in render_all(self._model, view))

    def _post(self, post: Post, view: PairView) -> int:
        """What one more post costs, beside another one, so that what a template says once is not counted each time."""
        if post.text not in self._posts:
            one, two = replace(view, posts=(post,)), replace(view, posts=(post, post))
            self._posts[post.text] = self._whole(two) - self._whole(one)
        return self._posts[post.text]


def _showing(view: PairView, kept: Sequence[Post]) -> PairView:
    wanted = set(kept)
    return replace(view, posts=tuple(post for post in view.posts if post in wanted))


class Read:
    """A model with a real tokenizer and a window, and a count of what is measured."""

    def __init__(self, model, tokens, window):
        self._model, self._tokens, self.window = model, tokens, window
        self.measured = 0
        self.card = model.card
        if hasattr(model, "rate"):
            self.rate = model.rate
        else:
            self.compare = model.compare

    def render(self, view):
        posts = "".join(f"\n\n[{place}] {post.text}" for place, post in enumerate(view.posts, 1))
        before = f"Written before:{posts}\n\nNow: " if view.posts else ""
        answers = [view.answer] if hasattr(view, "answer") else [f"A: {view.first}\n\nB: {view.second}"]
        return Prompt((Message("user", before + view.question), Message("assistant", answers[0])))

    def length(self, prompt):
        self.measured += 1
        return self._tokens(prompt)


CHAT, PAIR, PLAIN = tokenizer(chat_template=CHAT_TEMPLATE), pair_tokenizer(), tokenizer(chat_template=None)


def chat(prompt):
    messages = [message._asdict() for message in prompt.messages]
    return len(CHAT.apply_chat_template(messages, tokenize=True, return_dict=True)["input_ids"])


def pair(prompt):
    return len(PAIR(*(message.content for message in prompt.messages), verbose=False)["input_ids"])


def joined(prompt):
    return len(PLAIN("".join(message.content for message in prompt.messages), verbose=False)["input_ids"])


def views(count, seed=0):
    """Pairs as a run meets them: few users and questions, many answers."""
    chance = random.Random(seed)
    words = [word for text in CORPUS for word in text.split()] + ["weiß", "naïve", "10,000", "!?", "…"]

    def text(low, high):
        return " ".join(chance.choices(words, k=chance.randint(low, high))) + chance.choice(".!?")

    users = [tuple(Post(id=str(place), text=text(1, 30)) for place in range(chance.randint(1, 25))) for _ in range(12)]
    questions = [text(3, 12) for _ in range(8)]
    answers = [text(2, 30) for _ in range(60)]
    return [
        PairView(chance.choice(questions), *chance.sample(answers, 2), chance.choice(users), (), "u")
        for _ in range(count)
    ]


def rates(question, answer, posts):
    return 0.0


def compares(question, first, second, posts):
    return "tie"


@pytest.mark.parametrize(
    ("tokens", "function", "count", "window"),
    [(chat, rates, 500, 420), (pair, rates, 300, 250), (joined, compares, 200, 420)],
)
def test_the_posts_chosen_are_those_that_measuring_everything_chooses(tokens, function, count, window):
    shown = views(count)
    quick, slow = (Read(wrap(function), tokens, window) for _ in range(2))
    found, expected = PromptBudget(quick, BM25()), MeasuredWhole(slow, BM25())
    fitted = [found.fit(view) for view in shown]
    assert [tuple(one) for one in fitted] == [tuple(expected.fit(view)) for view in shown]
    assert sum(bool(one.dropped) for one in fitted) > count / 4  # not all fit, and not all were cut
    assert sum(not one.dropped for one in fitted) > count / 10
    assert quick.measured < slow.measured / 2


def test_what_does_not_fit_says_by_how_much():
    model = Read(wrap(rates), chat, window=20)
    (view,) = views(1)
    assert isinstance(PromptBudget(model, BM25()).fit(view), Unfit)
    bare = PromptBudget(model, BM25()).fit(replace(view, posts=()))
    over = max(chat(prompt) for prompt in render_all(model, replace(view, posts=()))) - 20
    assert bare.reason == f"question and answer alone are {over} tokens over the window of 20"


def test_sums_that_are_far_off_are_measured_instead():
    def squared(prompt):  # the length is nowhere near the sum of its parts
        return sum(len(message.content) for message in prompt.messages) ** 2 // 3000

    model = Read(wrap(rates), squared, window=300)
    found = PromptBudget(model, BM25())
    for view in views(60):
        fitted = found.fit(view)
        if isinstance(fitted, FittedView):
            assert max(squared(prompt) for prompt in render_all(model, fitted.view)) <= 300


@pytest.mark.parametrize("shown", [{"plan": "No jargon, please."}, {"posts": ("I bake.",)}])
def test_a_text_where_lines_or_posts_are_due_is_refused(shown: dict[str, object]) -> None:
    for make in (lambda: PairView("Tea?", "Green.", "Black.", **shown), lambda: AnswerView("Tea?", "Green.", **shown)):
        with pytest.raises(DataError, match="of a view is"):
            make()
