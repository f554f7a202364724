"""`lm:smollm2`, `lm:DIR`, `lm:FILE.gguf`, `lm:ORG/NAME`: a causal language model on this machine, in six modes.

`#compare` (the default) reads the logits of the letters A and B after a judge's prompt; `#rate` the expectation of a
digit from 1 to 5; `#loglik` how likely the answer is, per token; `#pmi` how much likelier the user's posts and plan
make it than neutral ones, which is 0 where neither is shown; `#yes-no` the log-odds of Yes against No, as generative
reward models are read; `#rank` the letters of a whole list of answers. All are read from logits: no reply can be
unreadable. A prompt longer than the window is never cut; it is invalid.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Literal, get_args

from prbench.config import ModelOptions
from prbench.errors import AddressError, ModelError, did_you_mean
from prbench.models.lists import check_lists, compare_by_rank, pair_prompts, rank_by_comparisons, render_pairs
from prbench.models.local.checkpoint import Checkpoint
from prbench.models.local.generate import LanguageModelGenerator
from prbench.models.local.hidden import HiddenStates
from prbench.models.local.language_model import LanguageModel, open_named
from prbench.models.local.logits import ANYBODY, LogitReader, log_sum, log_weights, reply_request
from prbench.models.local.prefix import LogitRequest, Reading, last_logits, log_likelihood
from prbench.prompts import Template, conversation, judged_conversation
from prbench.prompts.neutral import as_anybody
from prbench.prompts.turns import last_turn
from prbench.types import AnswerView, ListView, Message, Outcome, PairView, Prompt

__all__ = [
    "DigitRater",
    "InformationRater",
    "LanguageModel",
    "LetterComparer",
    "LikelihoodRater",
    "ListLetters",
    "LogitRequest",
    "PreferenceLetters",
    "Reading",
    "YesNoRater",
    "last_logits",
    "load",
    "load_encoder",
    "load_generator",
    "log_sum",
    "open_named",
]

Mode = Literal["compare", "loglik", "pmi", "rank", "rate", "yes-no"]


def load(rest: str, options: ModelOptions) -> "Reader":
    """Open the model behind `lm:REST`; pulls a named one on first use, reads no weights yet.

    Example:
        >>> load("smollm2#vote", ModelOptions())
        Traceback (most recent call last):
        prbench.errors.AddressError: unknown mode 'vote' in 'lm:smollm2#vote'
        <BLANKLINE>
        hint: known: compare, loglik, pmi, rank, rate, yes-no
    """
    name, mode = _parse(rest)
    model = LanguageModel(_opened(name, options), options)
    return _KINDS[mode](model)


def load_generator(rest: str, options: ModelOptions) -> LanguageModelGenerator:
    """Open the model behind `lm:REST` as a writer; a mode in the address is ignored."""
    name, _ = _parse(rest)
    return LanguageModelGenerator(LanguageModel(_opened(name, options), options))


def load_encoder(rest: str, options: ModelOptions) -> HiddenStates:
    """Open the model behind `lm:REST` as a frozen encoder; a mode in the address is ignored."""
    name, _ = _parse(rest)
    return HiddenStates(_opened(name, options), options)


def _opened(name: str, options: ModelOptions) -> Checkpoint:
    return open_named(name, f"lm:{name}", trust=options.trust_remote_code)


def _parse(rest: str) -> tuple[str, Mode]:
    name, mark, mode = rest.rpartition("#")
    if not mark or Path(rest).expanduser().exists():
        name, mode = rest, "compare"
    if not name:
        raise AddressError("'lm:' names no model", hint="for example lm:smollm2, lm:DIR or lm:ORG/NAME")
    for known in get_args(Mode):
        if mode == known:
            return name, known
    raise AddressError(f"unknown mode {mode!r} in 'lm:{rest}'", hint=did_you_mean(mode, get_args(Mode)))


class LetterComparer(LogitReader):
    """Judges by the log-odds of the letters A and B as the first token of the reply."""

    mode = "compare"
    template = "judge_letters.jinja"

    def __init__(self, model: LanguageModel, fragment: str | None = None) -> None:
        super().__init__(model, Template.load(model.options.template, "compare", self.template), fragment)
        self._letters = model.reply_tokens(("A", "B"))

    def render(self, view: PairView) -> Prompt:
        """Posts, plan, question and both answers as one user turn."""
        return Prompt(judged_conversation(self._template, view))

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Judge each view; the margin is log p(A) - log p(B)."""
        return self._read([self.render(view) for view in views])

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        return (reply_request(self._model, prompt, self._letters),)

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        first, second = log_weights(values[0], self._letters)
        margin = first - second
        return Outcome.judged("first" if margin > 0 else "second" if margin < 0 else "tie", margin, **usage)


class PreferenceLetters(LetterComparer):
    """A pair-preference model: trained to reply with the letter of the better answer, in its own layout.

    The layout is that of RLHFlow's pair-preference models; `--template` gives another.
    """

    template = "pair_preference.jinja"

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model, "read=letters")

    def render(self, view: PairView | ListView) -> Prompt:
        """A pair as one user turn, a list pair by pair."""
        return render_pairs(self, view) if isinstance(view, ListView) else super().render(view)

    def length(self, prompt: Prompt) -> int:
        """Tokens that this prompt takes; of a list, those of its longest pair."""
        return max(map(super().length, pair_prompts(prompt)))

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, Outcome]]:
        """Score the answers of each list by their mean margin over all others, both ways round."""
        return rank_by_comparisons(self, views)


class ListLetters(LogitReader):
    """Scores a list by the log-probability of each answer's letter as the first token of the reply."""

    mode = "rank"
    favours_places = True
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    most_answers = len(letters)

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model, Template.load(model.options.template, "rank", "judge_list.jinja"))
        self._tokens = model.reply_tokens(tuple(self.letters))

    def render(self, view: ListView | PairView) -> Prompt:
        """Posts, plan, question and all answers as one user turn."""
        listed = ListView.of(view) if isinstance(view, PairView) else view
        if len(listed.answers) > len(self.letters):
            raise ModelError(
                f"a list of {len(listed.answers)} answers, and there are {len(self.letters)} letters to name them by",
                hint="rank fewer answers at once, or rate each alone with #rate",
            )
        return Prompt(judged_conversation(self._template, listed))

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, Outcome]]:
        """Score each list as it stands, among its own letters."""
        check_lists(views)
        for place, outcome in self._read([self.render(view) for view in views]):
            weights = outcome.scores[: len(views[place].answers)]
            scores = [weight - log_sum(weights) for weight in weights]
            yield place, outcome.model_copy(update={"scores": tuple(scores)}) if weights else outcome

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Judge each pair by the scores of its two answers; their difference is the margin in log-odds."""
        return compare_by_rank(self, views)

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        return (reply_request(self._model, prompt, self._tokens),)

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        return Outcome.ranked(log_weights(values[0], self._tokens), **usage)


class DigitRater(LogitReader):
    """Rates by the expectation of the digits 1 to 5 as the first token of the reply."""

    mode = "rate"

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model, Template.load(model.options.template, "rate", "judge_digits.jinja"))
        self._digits = model.reply_tokens(("1", "2", "3", "4", "5"))

    def render(self, view: AnswerView) -> Prompt:
        """Posts, plan, question and the answer as one user turn."""
        return Prompt(judged_conversation(self._template, view))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Rate each view from 1 to 5."""
        return self._read([self.render(view) for view in views])

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        return (reply_request(self._model, prompt, self._digits),)

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        return Outcome.scored(_expectation(log_weights(values[0], self._digits)), **usage)


class YesNoRater(LogitReader):
    """Rates by the log-odds of Yes against No as the first token of the reply, as generative reward models are read."""

    mode = "yes-no"

    def __init__(self, model: LanguageModel, fragment: str | None = None) -> None:
        super().__init__(model, Template.load(model.options.template, "rate", "judge_yes_no.jinja"), fragment)
        self._words = model.reply_tokens(("Yes", "No"))

    def render(self, view: AnswerView) -> Prompt:
        """Posts, plan, question and the answer as one user turn."""
        return Prompt(judged_conversation(self._template, view))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view by reading logits."""
        return self._read([self.render(view) for view in views])

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        return (reply_request(self._model, prompt, self._words),)

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        yes, no = log_weights(values[0], self._words)
        return Outcome.scored(yes - no, **usage)


class LikelihoodRater(LogitReader):
    """Rates by the mean log-likelihood of the answer's tokens after posts, plan and question."""

    mode: ClassVar[Mode] = "loglik"

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model, Template.load(model.options.template, "turn", "turn.jinja"))

    def render(self, view: AnswerView) -> Prompt:
        """The user's posts, plan and question as one user turn, the answer as the assistant's turn."""
        return Prompt((*conversation(self._template, view), Message("assistant", view.answer)))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view by the likelihood of its answer."""
        return self._read([self.render(view) for view in views])

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        encoding = self._model.encoder.encode_answer(prompt)
        return (log_likelihood(encoding.ids, encoding.answer_start, len(encoding.ids) - self._model.closing_tokens),)

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        if not values[0]:
            return Outcome.invalid("the answer has no tokens", **usage)
        return Outcome.scored(math.fsum(values[0]) / len(values[0]), **usage)


class InformationRater(LikelihoodRater):
    """Rater by information per token: how much likelier the user's posts and plan make the answer than neutral ones."""

    mode = "pmi"

    def render(self, view: AnswerView) -> Prompt:
        """Return the prompt of the likelihood, and the same turn with neutral posts and plan in the user's place."""
        anybody = self._template.render(last_turn(as_anybody(view)))
        return Prompt((*super().render(view).messages, Message(ANYBODY, anybody)))

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        *earlier, turn, answer, anybody = prompt.messages
        if turn.content == anybody.content:
            return ()
        own = Prompt((*earlier, turn, answer))
        neutral = Prompt((*earlier, Message("user", anybody.content), answer))
        return (*super()._requests(own), *super()._requests(neutral))

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        if not values:
            return Outcome.scored(0.0, **usage)
        if not all(values):
            return Outcome.invalid("the answer has no tokens", **usage)
        own, neutral = (math.fsum(part) / len(part) for part in values)
        return Outcome.scored(own - neutral, **usage)


def _expectation(log_weights: Sequence[float]) -> float:
    """Mean of 1, 2, 3 … under weights given by their logs.

    Example:
        >>> _expectation([0.0, 0.0, 0.0])
        2.0
    """
    total = log_sum(log_weights)
    return math.fsum(number * math.exp(weight - total) for number, weight in enumerate(log_weights, start=1))


Reader = LetterComparer | ListLetters | LikelihoodRater | InformationRater | DigitRater | YesNoRater
_KINDS: dict[Mode, Callable[[LanguageModel], Reader]] = {
    "compare": LetterComparer,
    "loglik": LikelihoodRater,
    "pmi": InformationRater,
    "rank": ListLetters,
    "rate": DigitRater,
    "yes-no": YesNoRater,
}
