"""How fast the model is: what it foresees, what its first batches tell, and what a batch is planned to hold by that."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from prbench.serve.batching import Batcher, QueueLimits
from prbench.serve.config import ServeConfig
from prbench.serve.gathering import Waiting, next_batch
from prbench.serve.items import ScoreItem
from prbench.serve.metrics import Metrics
from prbench.serve.pace import USUAL, Pace, Rates, foreseen_rates
from prbench.serve.service import open_service
from prbench.serve.views import Views
from prbench.types import AnswerView, Context
from serve_models import Recorder


class Foreseeing(Recorder):
    """Says that a character takes so many seconds, as local weights do; its tokens are characters."""

    computes_once = "prefixes"
    window = None

    def __init__(self, each_s=0.0):
        super().__init__()
        self.each_s = each_s

    def length(self, prompt):
        return sum(len(message.content) for message in prompt.messages)

    def foreseen_seconds(self, tokens, length):
        assert length == tokens
        return self.each_s * tokens


class Keeping(Foreseeing):
    """Keeps what it made of a text."""

    computes_once = None


def view():
    return AnswerView("Tea?", "Green, or black.")


def test_the_first_guess_is_what_the_model_foresees():
    assert foreseen_rates(Foreseeing(0.001), view) == pytest.approx(Rates(0.001, 0.001))
    kept = foreseen_rates(Keeping(0.001), view)
    assert kept.own == pytest.approx(0.001)
    assert kept.shared < kept.own
    for model, sample in [(Recorder(), view), (Foreseeing(0.0), view), (Foreseeing(0.001), lambda: None)]:
        assert foreseen_rates(model, sample) == USUAL


def test_a_model_that_foresees_nothing_is_shown_no_sample():
    def sample():
        raise AssertionError("not needed")

    assert foreseen_rates(Recorder(), sample) == USUAL


@pytest.mark.parametrize(("rate", "first"), [(0.0001, 8), (0.002, 1)], ids=["fast", "slow"])
def test_the_first_batch_is_planned_by_it(suite, tmp_path, rate, first):
    model = Foreseeing(rate)
    config = ServeConfig.of(model="m", context="none", state=tmp_path / "judged.jsonl")
    items = [ScoreItem(question=f"{number}" + "q" * 400, answer="a" * 400) for number in range(8)]
    with open_service(config, model=model, suite=suite) as service, ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, service.score(items)).result()
    assert len(model.batches[0]) == first


def test_the_first_batch_pays_for_what_is_done_once_and_soon_counts_little():
    pace = Pace(Rates(1e-4, 1e-4))
    assert not pace.known
    pace.learn(2_000, 8_000, 20.0)
    assert pace.known
    assert pace.seconds(2_000, 8_000) > 10
    pace.learn(2_000, 8_000, 1.0)
    assert pace.seconds(2_000, 8_000) < 3


def test_a_guess_is_soon_put_right():
    for guess, truth in ((1e-4, 1e-5), (1e-4, 1e-3), (1e-6, 1e-4)):
        pace = Pace(Rates(guess, guess))
        for _ in range(2):
            pace.learn(10_000, 10_000, 20_000 * truth)
        assert pace.seconds(10_000, 10_000) == pytest.approx(20_000 * truth, rel=0.4)


@pytest.mark.parametrize(("kind", "known"), [(Foreseeing, True), (Keeping, False)])
def test_a_beginning_that_was_met_tells_only_of_a_model_that_keeps_nothing(kind, known):
    batcher = Batcher(
        kind(),
        lambda asked: [AnswerView(item.question, item.answer) for item in asked],
        QueueLimits(max_wait_s=0),
        Metrics(),
    )
    batcher._pace.fresh((hash((None, True, (), ())), "q" * 4_000))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, batcher.score([ScoreItem(question="q" * 4_000, answer="new")])).result()
    batcher.stop()
    assert batcher._pace.known is known


def test_a_question_is_not_begun_for_a_few_of_its_candidates():
    """Both questions cost 7 + 8 × 1; of the second, three candidates would fit, whose beginning costs more."""
    waiting = [Waiting("ann", "1?", own=1, shared=7)] * 8 + [Waiting("bob", "2?", own=1, shared=7)] * 8
    assert next_batch(waiting, most=32, budget=25) == list(range(8))
    assert next_batch(waiting[8:], most=32, budget=25) == list(range(8))
    long = [Waiting("ann", "1?", own=1, shared=7)] * 8 + [Waiting("bob", "2?", own=3, shared=1)] * 8
    assert next_batch(long, most=32, budget=25) == list(
        range(11)
    )  # answers that cost more than their beginning are cut


def test_posts_that_are_not_shown_cost_nothing(suite):
    user = suite[0].user
    item, own = (
        ScoreItem(question="Tea?", answer="Green.", user=user),
        ScoreItem(question="Tea?", answer="Green.", posts=["x" * 100] * 10),
    )
    whole, two = (Views(suite, Recorder(), Context.parse(name)) for name in ("profile", "recent@2"))
    posts = suite[0].profile
    assert len(posts) > 2
    shown = sum(len(post.text) for post in posts)
    assert whole.cost(item).shared == len("Tea?") + shown
    assert two.cost(item).shared == len("Tea?") + shown * 2 // len(posts)
    assert (whole.cost(own).shared, two.cost(own).shared) == (1_004, 204)
