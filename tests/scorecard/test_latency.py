"""The stopwatch: only fresh calls count, failures are not times, a known user is read once."""

import time
from types import SimpleNamespace

import pytest

from prbench.contexts import ContextBuilder
from prbench.models import ModelCard, load_model
from prbench.scorecard import latency
from prbench.scorecard.latency import WARM_UP, measure_latency
from prbench.types import Channel, Context, Outcome, Post, Prompt
from small_suite import Spy, SpyComparer, mirrored

PROFILE = Context.parse("profile")


def long_pairs():
    """Texts of so many words that no two orders are the same by accident."""
    tail = " because one two three four five six seven eight nine ten counts. And so on, in a sentence of its own."
    posts = tuple(Post(id=f"{n}", text=f"post {n}{tail}") for n in range(3))
    return [
        pair.model_copy(
            update={
                "question": pair.question + tail,
                "chosen": pair.chosen + tail,
                "rejected": pair.rejected + tail,
                "profile": posts,
            }
        )
        for pair in mirrored(3, 6)
    ]


class Remembering(Spy):
    """Counts the texts that it has never seen, as an encoder with a cache would."""

    def __init__(self, known):
        super().__init__()
        self.known = set(known)
        self.read = []

    def rate(self, views):
        for index, view in enumerate(views):
            for text in (view.question, view.answer, *(post.text for post in view.posts)):
                if text not in self.known:
                    self.known.add(text)
                    self.read.append(text)
            yield index, Outcome.scored(1.0)


def measure(model, count=10, **settings):
    pairs = long_pairs()
    return measure_latency(model, pairs[: count + WARM_UP], ContextBuilder(pairs, model), PROFILE, **settings)


def test_no_text_was_ever_seen_and_a_known_user_is_read_once():
    pairs = long_pairs()
    known = [text for pair in pairs for text in (pair.question, pair.chosen, pair.rejected)]
    model = Remembering([*known, *(post.text for pair in pairs for post in pair.profile)])
    measure(model)
    measure(model)  # nor by an earlier measurement
    # A stranger: question, two answers, three posts; met again: question and two answers.
    assert len(model.read) == 2 * (10 + WARM_UP) * ((3 + 3) + 3)


def test_texts_keep_their_length_and_their_sentences():
    model = Remembering([])
    measure(model)
    lengths = {(len(text.split()), text.count(".")) for text in model.read if text.count("?") == 0}
    originals = {
        (len(text.split()), text.count("."))
        for pair in long_pairs()
        for text in (pair.chosen, pair.rejected, *(post.text for post in pair.profile))
    }
    assert lengths == originals


def test_a_seed_makes_the_same_texts():
    one, two = Remembering([]), Remembering([])
    measure(one, seed=1)
    measure(two, seed=1)
    assert one.read == two.read


def test_a_known_user_takes_what_a_stranger_takes_less_the_posts(monkeypatch):
    class Timed(Remembering):
        def now(self):
            return 0.001 * len(self.read)  # a millisecond for each new text

    model = Timed([])
    clock = SimpleNamespace(perf_counter=model.now, process_time=lambda: 0.0, time_ns=time.time_ns)
    monkeypatch.setattr(latency, "time", clock)
    found = measure(model)
    assert (found.p50.value, found.known_user_p50.value) == (pytest.approx(6.0), pytest.approx(3.0))
    assert (found.p95.value, found.known_user_p95.value) == (pytest.approx(6.0), pytest.approx(3.0))
    assert found.cpu_p50.value == 0.0


class Slow(Spy):
    """Takes its time over each pair; cannot answer about soup."""

    def rate(self, views):
        time.sleep(0.004)
        for index, view in enumerate(views):
            if "soup" in view.question:
                yield index, Outcome.failed("no soup")
            else:
                yield index, Outcome.scored(1.0)


def test_times_are_of_whole_pairs_and_failures_are_none():
    found = measure(Slow(), 16)
    assert (found.pairs, found.unanswered) == (16, 3)
    assert found.p50.n == found.known_user_p95.n == 13
    assert 4 <= found.p50.value <= found.p95.value
    assert found.machine.cores >= 1


def test_a_judge_is_asked_in_both_orders():
    model = SpyComparer()
    measure(model, 4)
    assert len(model.views) == 2 * 2 * (4 + WARM_UP)
    assert model.views[0] == model.views[1].swap()


class Broken(Spy):
    """Drops every second answer."""

    def rate(self, views):
        yield 0, Outcome.scored(1.0)


def test_a_missing_answer_is_no_time():
    found = measure(Broken())
    assert (found.p50.value, found.unanswered) == (None, 10)


def test_prepared_before_the_clock_runs():
    calls = []

    class Heavy(Spy):
        def prepare(self):
            calls.append("prepare")

        def rate(self, views):
            calls.append("rate")
            yield from super().rate(views)

    measure(Heavy(), 1)
    assert calls[0] == "prepare"
    assert calls.count("prepare") == 1


@pytest.mark.parametrize("name", ["longer", "overlap"])
def test_who_reads_no_user_is_timed_without(name):
    model = load_model(name)
    pairs = long_pairs()
    found = measure_latency(model, pairs[:6], ContextBuilder(pairs, model), Context.parse("none"))
    assert found.p50.n == 4


def test_a_pair_that_does_not_fit_is_left_out():
    class Narrow(Spy):
        window = 1

        def __init__(self):
            super().__init__(window=1)
            self.card = ModelCard(address="narrow", reads=frozenset({Channel.POSTS}))

        def length(self, prompt: Prompt) -> int:
            return 99

    found = measure(Narrow())
    assert (found.pairs, found.p50.value) == (0, None)
