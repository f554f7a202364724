"""Settings: made in one way, refused in one way."""

import pytest

from prbench.config import ModelOptions, RunConfig
from prbench.errors import ConfigError
from prbench.scorecard import ScorecardConfig
from prbench.studies.best_of_n import BestOfNConfig
from prbench.studies.ppo import PPOConfig


def refused(make, *place, **values):
    with pytest.raises(ConfigError) as found:
        make(*place, **values)
    return found.value


def test_a_value_is_refused_by_field_and_value():
    error = refused(RunConfig.of, suite="s", model="longer", resamples=3)
    assert error.message == "resamples is 3: Input should be greater than or equal to 100"
    nested = refused(RunConfig.of, suite="s", model="longer", options={"retries": -1})
    assert nested.message == "options.retries is -1: Input should be greater than or equal to 0"


def test_a_file_is_named_and_an_unknown_field_gets_the_nearest():
    error = refused(BestOfNConfig.of, "study.toml", policy="lm:a", judgge="lm:b")
    assert error.message.startswith("study.toml: judgge is 'lm:b'")
    assert error.hint == "did you mean 'judge'?"


def test_fields_that_do_not_fit_together_are_said_without_a_field():
    error = refused(BestOfNConfig.of, "study.toml", policy="lm:a", n=4, k=5)
    assert error.message == "study.toml: best of 5 needs 5 candidates, there are 4"


def test_options_are_named_as_they_are_typed_and_none_is_the_default():
    assert PPOConfig.typed(steps=None, rollouts=3) == PPOConfig(rollouts=3)
    assert refused(PPOConfig.typed, new_tokens=0).message.startswith("--new-tokens 0: ")


def test_what_is_missing_is_said():
    assert refused(ScorecardConfig.of).message == "no model was given"
    assert "model" in refused(RunConfig.of, suite="s").message


def test_settings_are_written_as_they_were_before_there_were_more():
    assert set(ModelOptions().model_dump()) == set(ModelOptions.model_fields) - {
        *("key_env", "body", "structured", "logprobs"),
        *("trust_remote_code", "device_map", "max_memory", "quantize", "quantize_sample"),
    }
