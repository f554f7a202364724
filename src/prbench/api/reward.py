"""One output, one user, one number between 0 and 1, from a real Rater that has been calibrated.

Reward models score on scales of their own. A scale (μ, s), fitted on a validation split and saved with the model, turns
a score r into σ((r − μ)/s). Without it there is an error, never a number.
"""

import math
import statistics
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from prbench.api.evaluating import evaluate, open_model
from prbench.config import ModelOptions, cache_folder, digest
from prbench.contexts import Unfit
from prbench.contexts.budget import PromptBudget
from prbench.data import Suite
from prbench.errors import ConfigError, ModelError
from prbench.files import read_model, write_whole
from prbench.models import Model, Rater, alone
from prbench.models.personal import shipped_folder
from prbench.rank import BM25
from prbench.types import Frozen, Outcome, Pair, PairView, Post

FILE = "prbench_scale.json"

Profile = str | Mapping[str, Any] | Sequence[Post | str | Mapping[str, Any]]


class Scale(Frozen):
    """Range of a model's scores, fitted on validation scores."""

    model: str
    identity: str
    """Content hash of address, revision and parameters: another template or head has another scale."""
    mean: float
    spread: float
    n: int
    """Scores it was fitted on."""
    suite: str

    def reward(self, score: float) -> float:
        """Return the scaled reward σ((r − μ)/s).

        Example:
            >>> Scale(model="m", identity="", mean=2.0, spread=1.0, n=10, suite="s").reward(2.0)
            0.5
        """
        return 0.5 * (1 + math.tanh((score - self.mean) / self.spread / 2))


class PersonalizedReward(TypedDict):
    """Result of a call of `evaluate_personalized_reward`."""

    predicted_reward: float
    human_preference_score: float
    alignment_score: float


def calibrate(
    model: Any,
    suite: str | Path | Suite | Iterable[Pair] = "mirror",
    *,
    split: str | None = "validation",
    context: str = "profile",
    limit: int | None = None,
    options: ModelOptions | None = None,
) -> Scale:
    """Fit a model's scale on the scores of a validation split and save it with the model.

    A model in a folder keeps it there (`prbench_scale.json`), any other in the cache folder, by address, revision and
    parameters. A model that cannot be pinned (a function) returns its scale without saving it.
    """
    given = open_model(model, options)
    opened = alone(given)
    if opened is None:
        raise ModelError(f"{given.card.address!r} compares answers and gives no scores to calibrate")
    found = evaluate(opened, suite, contexts=[context], split=split, limit=limit, options=options, resamples=100)
    scores = [score for record in found.records for score in (record.chosen_score, record.rejected_score)]
    known = [score for score in scores if score is not None]
    if len(known) < 4 or len(set(known)) < 2:
        raise ModelError(
            f"{opened.card.address!r} gave {len(set(known))} distinct scores on {len(known)} answers: there is no scale"
        )
    scale = Scale(
        model=opened.card.address,
        identity=_identity(opened),
        mean=statistics.fmean(known),
        spread=statistics.stdev(known),
        n=len(known),
        suite=found.suite.fingerprint[:16],
    )
    if opened.card.reusable:
        write_whole(_path(opened), scale.model_dump_json(indent=2) + "\n")
    return scale


def evaluate_personalized_reward(
    model_output: str,
    user_profile: Profile,
    human_preference_score: float,
    *,
    model: Any,
    question: str = "",
    scale: Scale | None = None,
    options: ModelOptions | None = None,
) -> PersonalizedReward:
    """Score one output for one user and set it against a person's own score.

    Args:
        model_output: The answer to score.
        user_profile: The user's posts (a text, texts, `Post`s, mappings with `text`), or stated preferences by name.
        human_preference_score: The person's score, from 0 to 1.
        model: A Rater, by address or as an object.
        question: What was asked, where it is known.
        scale: The model's scale; default: the one that `calibrate` saved.
        options: As for `evaluate`.

    Example:
        >>> def brief(question, answer, posts):
        ...     return -len(answer.split())
        >>> scale = Scale(model="brief", identity="", mean=-2.0, spread=1.0, n=8, suite="")
        >>> found = evaluate_personalized_reward("Two words.", {"length": "short"}, 0.75, model=brief, scale=scale)
        >>> found["predicted_reward"], found["alignment_score"]
        (0.5, 0.75)
    """
    for name, given_text in (("model_output", model_output), ("question", question)):
        if not isinstance(given_text, str):
            raise ConfigError(f"{name} is {given_text!r}, not a text", hint="give a text")
    if not model_output.strip():
        raise ConfigError("model_output is empty, so there is nothing to score", hint="pass the model's answer")
    if not 0.0 <= human_preference_score <= 1.0:
        raise ConfigError(f"human_preference_score is {human_preference_score}", hint="give a number from 0 to 1")
    given = open_model(model, options)
    opened = alone(given)
    if opened is None:
        raise ModelError(f"{given.card.address!r} compares answers and gives no reward", hint="use a Rater")
    if "posts" not in opened.card.reads:
        raise ModelError(f"{opened.card.address!r} does not read a profile, so its reward is not personal")
    stated = isinstance(user_profile, Mapping) and str(opened.card.address).startswith("personal:")
    if stated and opened.card.parameters.get("method") != "contrast":  # which has learned what wishes mean
        warnings.warn(
            f"{opened.card.address} was trained on what people write, not on stated preferences: it reads "
            "'tone: warm' as if the user had posted it, and may make little of it",
            UserWarning,
            stacklevel=2,
        )
    scale = scale or _saved(opened)
    outcome = _rate(opened, question, model_output, profile_posts(user_profile))
    if outcome.score is None:
        raise ModelError(f"{opened.card.address!r} gave no score: {outcome.reason}")
    predicted = scale.reward(outcome.score)
    return PersonalizedReward(
        predicted_reward=predicted,
        human_preference_score=human_preference_score,
        alignment_score=max(0.0, 1.0 - abs(predicted - human_preference_score)),
    )


def _rate(model: Model, question: str, answer: str, posts: tuple[Post, ...]) -> Outcome:
    """Score the answer with as many posts as fit, chosen as in the benchmark."""
    fitted = PromptBudget(model, BM25()).fit(PairView(question, answer, answer, posts))
    if isinstance(fitted, Unfit):
        return Outcome.invalid(fitted.reason)
    ((_, outcome),) = list(cast(Rater, model).rate([fitted.view.answers()[0]]))
    return outcome


def profile_posts(profile: Profile) -> tuple[Post, ...]:
    """Posts from texts, mappings or stated preferences.

    Example:
        >>> [post.text for post in profile_posts({"tone": "warm", "preference_for_brevity": True})]
        ['tone: warm', 'preference for brevity: yes']
        >>> [post.id for post in profile_posts(["I bake.", "I run."])]
        ['1', '2']
    """
    if isinstance(profile, str):
        profile = [profile]
    if not isinstance(profile, Iterable):
        raise ConfigError(f"user_profile is {profile!r}", hint="give posts: a text, a list of texts, or wishes by name")
    if isinstance(profile, Mapping):
        said = ((str(key), f"{str(key).replace('_', ' ')}: {_say(value)}") for key, value in profile.items())
        posts = tuple(Post(id=key, text=text) for key, text in said)
    else:
        posts = tuple(_post(number, item) for number, item in enumerate(profile, 1))
    if not posts:
        raise ConfigError("user_profile is empty, so a reward would not be personal", hint="give at least one post")
    return posts


def _say(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple | set) else str(value)


def _post(number: int, item: Post | str | Mapping[str, Any]) -> Post:
    if isinstance(item, Post):
        return item
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, Mapping) or not str(item.get("text", "")).strip():
        raise ConfigError(
            f"post {number} of user_profile has no text: {item!r}", hint="a post is a text, or a mapping with 'text'"
        )
    return Post(id=str(item.get("id", number)), text=str(item["text"]), category=str(item.get("category", "")))


def _path(model: Model) -> Path:
    folder = Path(model.card.address.partition(":")[2].partition("#")[0]).expanduser()
    if model.card.address.partition(":")[0] in ("hf", "personal") and folder.is_dir():
        return folder / FILE
    return cache_folder() / "scales" / f"{_identity(model)}.json"


def _identity(model: Model) -> str:
    return digest(model.card.identity)[:32]


def _saved(model: Model) -> Scale:
    path = _path(model)
    if not path.exists() and (shipped := shipped_folder(model.card.address)):
        return read_model(shipped / FILE, Scale, raises=ModelError, hint="install the package again")
    if not path.exists():
        raise ModelError(
            f"{model.card.address!r} is not calibrated, so its scores have no scale (no {path.name})",
            hint="fit one on a validation split: prbench.calibrate(model, suite), or pass scale=",
        )
    scale = read_model(path, Scale, raises=ModelError, hint="run prbench.calibrate again")
    if scale.identity != _identity(model):
        raise ModelError(
            f"{model.card.address!r} has changed since it was calibrated ({str(path)!r})",
            hint="run prbench.calibrate again",
        )
    return scale
