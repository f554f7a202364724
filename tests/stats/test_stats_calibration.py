"""Calibration, length and position: by hand and in worlds where the truth is known."""

import numpy as np
import pytest

from prbench.stats import Clusters, Estimate, calibration, length_bias, position_bias


def rng(seed=0):
    return np.random.default_rng(seed)


def separate(n):
    return Clusters.of(range(n), range(n))


def test_calibration_by_hand():
    result = calibration([0.5, 0.4, 0.62, 1.0], separate(4), rng())
    # Bins [.5,.55): gap 0; [.6,.65): confidences .6 (wrong) and .62 (right), gap .61 − .5; [.95,1]: gap 0.
    assert [(bin.confidence, bin.accuracy, bin.n) for bin in result.bins] == [
        pytest.approx((0.5, 0.5, 1)),
        pytest.approx((0.61, 0.5, 2)),
        pytest.approx((1.0, 1.0, 1)),
    ]
    assert result.ece.value == pytest.approx(0.5 * 0.11)
    assert result.brier.value == pytest.approx((0.25 + 0.36 + 0.1444 + 0) / 4)
    assert result.ece.low <= result.ece.value <= result.ece.high


def test_a_calibrated_model_has_little_error_and_a_boastful_one_much():
    confidence = rng(1).uniform(0.5, 1, 4000)
    right = rng(2).random(4000) < confidence
    honest = calibration(np.where(right, confidence, 1 - confidence), separate(4000), rng(), resamples=300)
    boastful = calibration(np.where(right, 0.99, 0.01), separate(4000), rng(), resamples=300)
    assert honest.ece.low <= 0.02
    assert honest.ece.value < 0.04
    assert boastful.ece.low > 0.2


def test_calibration_edges():
    empty = calibration([], separate(0), rng())
    assert empty.ece == empty.brier == Estimate.undefined()
    assert empty.bins == ()
    assert calibration([0.9], separate(1), rng()).ece.low is None
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        calibration([1.2], separate(1), rng())


def test_length_bias_by_hand():
    bias = length_bias([1, 0, 0.5, 0, 1], [20, 10, 30, 20, 7], [10, 20, 10, 10, 7], separate(5), rng())
    assert bias.longer_wins.value == pytest.approx((1 + 1 + 0.5 + 0) / 4)
    assert bias.longer_wins.n == 4
    ratios = np.log([2, 0.5, 3, 2, 1])
    assert bias.correlation.value == pytest.approx(np.corrcoef([1, 0, 0.5, 0, 1], ratios)[0, 1])
    assert bias.correlation.n == 5


def test_length_bias_without_variance():
    bias = length_bias([1, 0], [5, 5], [5, 5], separate(2), rng())
    assert bias.longer_wins == Estimate.undefined()
    assert bias.correlation == Estimate.undefined(2)
    assert length_bias([1, 0], [0, 5], [5, 0], separate(2), rng()).longer_wins.value == 0


def test_the_longer_baseline_is_caught():
    chosen, rejected = rng(1).integers(20, 100, (2, 500))
    preference = (1 + np.sign(chosen - rejected)) / 2
    bias = length_bias(preference, chosen, rejected, separate(500), rng())
    assert bias.longer_wins.value == 1.0
    assert bias.correlation.low > 0.7


def test_position_bias_by_hand():
    #                 steady    steady    flip     flip      half tie  ties   half invalid
    chosen_first = ["first", "second", "first", "second", "first", "tie", "first"]
    chosen_second = ["second", "first", "first", "second", "tie", "tie", None]
    bias = position_bias(chosen_first, chosen_second, separate(7), rng())
    assert bias.flip_rate.value == pytest.approx(2 / 6)
    assert bias.flip_rate.n == 6
    assert bias.first_preferred.value == pytest.approx(6 / 10)
    assert bias.first_preferred.n == 10
    assert 0 <= bias.first_preferred.low < 0.6 < bias.first_preferred.high <= 1


def test_a_judge_that_always_names_the_first_answer():
    bias = position_bias(["first"] * 40, ["first"] * 40, separate(40), rng())
    assert bias.flip_rate == Estimate(1.0, 1.0, 1.0, 40)
    assert bias.first_preferred == Estimate(1.0, 1.0, 1.0, 80)


def test_position_bias_of_ties_or_nothing_is_undefined():
    bias = position_bias(["tie", None], ["tie", None], separate(2), rng())
    assert bias.flip_rate.value == 0
    assert bias.first_preferred == Estimate.undefined()
    assert position_bias([None], [None], separate(1), rng()).flip_rate == Estimate.undefined()
    with pytest.raises(ValueError, match="1 and 2 verdicts for 2 pairs"):
        position_bias(["tie"], ["tie", "tie"], separate(2), rng())


def test_rare_verdicts_give_a_share_without_an_interval():
    bias = position_bias(["first"] + ["tie"] * 39, ["tie"] * 40, separate(40), rng())
    assert bias.first_preferred == Estimate(1.0, None, None, 1)
