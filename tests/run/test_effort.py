"""What a local model computed stands in the result and in the progress line; of others it stays null."""

import io

import pytest

from prbench import evaluate
from prbench.models.effort import Effort
from prbench.models.local import hf
from prbench.models.registry import ModelOptions
from prbench.results import verify
from prbench.run import RecordProgress
from prbench.run.progress import work_done
from small_suite import follows_posts, mirrored

LOCAL = ("tokens_naive", "tokens_computed", "passes_s", "computed_tokens_per_s", "flops", "flops_per_s")
MEASURED = ("peak_flops_per_s", "peak_share")


class Asker:
    """Says what it is told to say."""

    def __init__(self, effort: Effort, peak_flops: float | None) -> None:
        self.effort = effort
        self.peak_flops = peak_flops


def timing_of(model, **settings):
    found = evaluate(model, mirrored(couples=1, questions=3), contexts=["none", "profile"], resamples=100, **settings)
    return found.timing


@pytest.fixture
def reward_model(tiny_reward_model):
    return hf.load(str(tiny_reward_model), ModelOptions(window=2048))


def test_a_local_model_tells_what_it_computed_and_how_fast(reward_model, tmp_path):
    timing = timing_of(reward_model, out=tmp_path / "run")
    assert all(getattr(timing, name) > 0 for name in LOCAL + MEASURED)
    assert timing.tokens_computed < timing.tokens_naive
    assert timing.flops_per_s == pytest.approx(timing.flops / timing.passes_s)
    assert timing.computed_tokens_per_s == pytest.approx(timing.tokens_computed / timing.passes_s)
    assert timing.peak_share == pytest.approx(timing.flops_per_s / timing.peak_flops_per_s)
    assert timing.passes_s < timing.elapsed_s
    assert not verify(tmp_path / "run").mismatches  # figures of time are no part of it


def test_a_second_run_with_the_same_model_counts_from_zero(reward_model):
    first, second = (timing_of(reward_model, cache=False) for _ in range(2))
    assert second.tokens_naive == first.tokens_naive
    assert second.flops == pytest.approx(first.flops)


def test_where_nothing_was_computed_all_is_null(reward_model, tmp_path):
    for timing in (timing_of(follows_posts), [timing_of(reward_model, out=tmp_path / "run") for _ in range(2)][1]):
        assert {getattr(timing, name) for name in LOCAL + MEASURED} == {None}


@pytest.mark.parametrize(
    ("effort", "peak", "shown"),
    [
        (Effort(), None, []),
        (Effort(100, 40), None, []),  # a server's prefix cache: tokens, no operations
        (
            Effort(100, 40, 6e9, 2.0),
            1e10,
            ["computes 20 tokens/s", "60% of tokens saved", "30% of matmul peak"],
        ),
        (Effort(100, 100, 6e9, 2.0), None, ["computes 50 tokens/s"]),
        (Effort(100, 40, 0.0, 2.0), 1e10, ["computes 20 tokens/s", "60% of tokens saved"]),  # a mixture of experts
    ],
)
def test_the_progress_line_says_it_in_a_few_words(effort, peak, shown):
    assert work_done(Asker(effort, peak)) == shown
    progress = RecordProgress(io.StringIO())
    progress.watch(Asker(effort, peak))
    assert progress.status().endswith(" · ".join(shown))


def test_the_progress_of_a_real_run_shows_it(reward_model, capsys):
    timing_of(reward_model, progress=True)
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert "of tokens saved" in last
    assert "of matmul peak" in last
