"""`jury:ADDRESS,ADDRESS,…[#majority|mean]`: several models judge each pair, and their verdicts are one.

Each juror is asked as if it were alone: a call has the key that it has in a run of that juror, so answers are shared
with such runs, cached and resumed. `majority` counts verdicts; a juror without one abstains. `mean` averages margins,
which must all be log-odds: other scales are refused before the first call.
"""

import re
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Any, Literal, NamedTuple, cast, get_args
from urllib.parse import urlsplit

from prbench.config import ModelOptions, digest
from prbench.errors import AddressError, BudgetError, ModelError
from prbench.models.effort import Effort
from prbench.models.protocols import Comparer, Model, ModelCard, Rater
from prbench.models.registry import load_model, schemes
from prbench.models.remote.dialects import DIALECTS
from prbench.types import AnswerView, Choice, JurorVerdict, Outcome, PairView, Prompt

Rule = Literal["majority", "mean"]
View = AnswerView | PairView
_HOSTED = ("chat", "anthropic", "gemini", "http")


@dataclass(frozen=True, slots=True)
class JurorAnswer(AnswerView):
    """View that one juror has of one answer."""

    juror: int = 0


@dataclass(frozen=True, slots=True)
class JurorPair(PairView):
    """View that one juror has of a pair."""

    juror: int = 0


class _Said(NamedTuple):
    """Result of one juror's calls."""

    status: str
    reason: str = ""
    verdict: Choice | None = None
    margin: float | None = None
    """Preference for the answer that was shown first."""


def load(rest: str, options: ModelOptions) -> "Jury":
    """Open all jurors; no request is sent yet.

    Example:
        >>> load("longer,overlap,random", ModelOptions()).card.address
        'jury:longer,overlap,random#majority'
    """
    addresses, rule = _parse(rest)
    hosted = [address for address in addresses if is_hosted(address)]
    if options.price is not None and len(hosted) > 1:
        raise ModelError(
            f"one --price for {len(hosted)} hosted jurors", hint="leave it out: known models have prices of their own"
        )
    jurors = [load_model(address, options) for address in addresses]
    for address, juror in zip(addresses, jurors, strict=True):
        if not hasattr(juror, "render"):
            raise AddressError(f"{address!r} cannot sit in a jury: it asks nothing", hint="name a model that is asked")
    _check_key(jurors, options.key_env)
    if rule == "mean":
        _check_scales(jurors)
    return Jury(jurors, rule)


def is_hosted(address: str) -> bool:
    """Whether a model answers on a server, and may cost money."""
    return address.partition(":")[0] in _HOSTED


def _parse(rest: str) -> tuple[list[str], Rule]:
    named, mark, last = rest.rpartition("#")
    rule: Rule = "mean" if mark and last == "mean" else "majority"
    if not mark or last not in get_args(Rule):
        named = rest
    kinds = "|".join(sorted(map(re.escape, schemes()), key=len, reverse=True))
    addresses = [part.strip() for part in re.split(rf",(?=\s*(?:{kinds})(?:[:,#]|\s*$))", named) if part.strip()]
    example = "for example jury:chat:a@URL,chat:b@URL,lm:smollm2"
    if len(addresses) < 2:
        count = "no juror" if not addresses else f"one juror, {addresses[0]!r}"
        raise AddressError(f"'jury:{rest}' names {count}", hint=f"name two or more: {example}")
    if any(address.startswith("jury:") for address in addresses):
        raise AddressError(f"'jury:{rest}' has a jury among its jurors", hint="name the jurors themselves")
    if doubled := [address for address, count in Counter(addresses).items() if count > 1]:
        raise AddressError(f"'jury:{rest}' names {doubled[0]!r} twice", hint="a juror has one voice")
    return addresses, rule


def _check_key(jurors: Sequence[Model], key_env: str | None) -> None:
    """A key belongs to one host: one variable for jurors on several would send it to all of them."""
    addresses = [juror.card.address for juror in jurors if juror.card.address.partition(":")[0] in DIALECTS]
    hosts = dict.fromkeys(urlsplit(address.partition("@")[2]).hostname or "?" for address in addresses)
    if key_env is not None and len(hosts) > 1:
        raise ModelError(
            f"--key-env {key_env} would send one key to {' and '.join(hosts)}",
            hint="leave it out: OpenAI, Anthropic and Gemini have variables of their own; or name jurors of one host",
        )


def _check_scales(jurors: Sequence[Model]) -> None:
    for juror in jurors:
        known = juror.card.units == "log-odds" if _rates(juror) else getattr(juror, "has_margins", True)
        if not known:
            what = "scores in points" if _rates(juror) else "verdicts without margins"
            raise ModelError(
                f"{juror.card.address!r} gives {what}, which cannot be averaged with the other jurors' log-odds",
                hint="use #majority" + ("" if _rates(juror) else ", or ask for margins with --logprobs"),
            )


def _rates(model: Model) -> bool:
    return hasattr(model, "rate") and not hasattr(model, "compare")


class Jury:
    """Several models as one Comparer.

    Args:
        jurors: Two or more.
        rule: How their verdicts become one.
    """

    def __init__(self, jurors: Sequence[Model], rule: Rule) -> None:
        self.jurors = tuple(jurors)
        self.rule = rule
        cards = [juror.card for juror in jurors]
        self.card = ModelCard(
            address=f"jury:{','.join(card.address for card in cards)}#{rule}",
            revision=digest([card.revision for card in cards])[:16] if any(card.revision for card in cards) else "",
            reads=frozenset.intersection(*(card.reads for card in cards)),
            parameters={"rule": rule, "jurors": [card.identity for card in cards]},
            deterministic=all(card.deterministic for card in cards),
            reusable=all(card.reusable for card in cards),
            units="log-odds" if rule == "mean" else "points",
        )

    @property
    def effort(self) -> Effort:
        """Effort of all jurors together."""
        found = Effort()
        for juror in self.jurors:
            found += getattr(juror, "effort", None) or Effort()
        return found

    @property
    def note(self) -> str | None:
        """Notes of the jurors, each by name."""
        said = [(juror.card.address, getattr(juror, "note", None)) for juror in self.jurors]
        return "; ".join(f"{address}: {note}" for address, note in said if note) or None

    def prepare(self) -> None:
        """Load the weights of jurors that have any."""
        for juror in self.jurors:
            if hasattr(juror, "prepare"):
                juror.prepare()

    def seats(self, view: PairView) -> tuple[View, ...]:
        """Return the views of a pair for each juror, one after the other: one view, or one for each answer."""
        found: list[View] = []
        for number, juror in enumerate(self.jurors):
            if _rates(juror):
                found += [JurorAnswer(**_fields(answer), juror=number) for answer in view.answers()]
            else:
                found.append(JurorPair(**_fields(view), juror=number))
        return tuple(found)

    def render(self, view: View) -> Prompt:
        """Return the prompt that a juror receives; of a plain pair, that of the first juror."""
        if not isinstance(view, JurorAnswer | JurorPair):
            view = self.seats(cast(PairView, view))[0]
        juror, plain = seated(self, view)
        prompt: Prompt = juror.render(plain)
        return prompt

    def compare(self, views: Sequence[View]) -> Iterator[tuple[int, Outcome]]:
        """Ask every juror what is meant for it, all at the same time; of a plain pair, all of them."""
        plain = [place for place, view in enumerate(views) if seated(self, view)[0] is self]
        for place in plain:
            seats = self.seats(cast(PairView, views[place]))
            outcomes = dict(self.compare(seats))
            yield place, self._outcome([outcomes[seat] for seat in range(len(seats))])
        hosted_first = sorted(enumerate(self.jurors), key=lambda one: not is_hosted(one[1].card.address))
        yield from _in_turn([self._asked(number, juror, views) for number, juror in hosted_first])

    def _asked(self, number: int, juror: Model, views: Sequence[View]) -> Generator[tuple[int, Outcome]]:
        """Ask one juror what is meant for it."""
        places = [place for place, view in enumerate(views) if getattr(view, "juror", None) == number]
        asked: list[Any] = [seated(self, views[place])[1] for place in places]
        replies = cast(Rater, juror).rate(asked) if _rates(juror) else cast(Comparer, juror).compare(asked)
        with ExitStack() as stack:
            if hasattr(replies, "close"):
                stack.enter_context(closing(cast(Any, replies)))
            for index, outcome in replies:
                yield places[index], outcome

    def verdict(self, outcomes: Sequence[Outcome], order: str) -> Mapping[str, Any]:
        """Return the jury's verdict on the jurors' outcomes, as fields of a record."""
        said = list(self._each(outcomes))
        failed = [(number, one.reason) for number, one in enumerate(said) if one.status == "failed"]
        if failed:
            return {"status": "failed", "reason": f"{self._name(failed[0][0])}: {failed[0][1]}"}
        jurors: tuple[JurorVerdict, ...] = tuple(one.verdict or "invalid" for one in said)
        found = self._mean(said) if self.rule == "mean" else self._majority(said)
        if found.status != "ok":
            return {"status": "invalid", "reason": found.reason, "jurors": jurors}
        margin = found.margin if found.margin is None or order != "chosen-second" else -found.margin
        return {"status": "ok", "verdict": found.verdict, "margin": margin, "jurors": jurors}

    def _outcome(self, outcomes: Sequence[Outcome]) -> Outcome:
        """One outcome of a pair that is asked outside a run."""
        found = self.verdict(outcomes, "chosen-first")
        used = {name: sum(getattr(one, name) for one in outcomes) for name in ("latency_ms", "cost_usd", "tokens_in")}
        if found["status"] != "ok":
            return Outcome.model_validate({"status": found["status"], "reason": found["reason"], **used})
        return Outcome.judged(found["verdict"], found["margin"], **used)

    def _each(self, outcomes: Sequence[Outcome]) -> Iterator[_Said]:
        rest = iter(outcomes)
        for juror in self.jurors:
            own = [next(rest), next(rest)] if _rates(juror) else [next(rest)]
            bad = next((one for status in ("failed", "invalid") for one in own if one.status == status), None)
            if bad is not None:
                yield _Said(bad.status, bad.reason)
            elif _rates(juror):
                yield _by_scores(*own)
            elif own[0].verdict is None:
                yield _Said("invalid", "the model gave no verdict")
            else:
                yield _Said("ok", verdict=own[0].verdict, margin=own[0].margin)

    def _majority(self, said: Sequence[_Said]) -> _Said:
        votes = Counter(one.verdict for one in said if one.verdict is not None)
        if not votes:
            return _Said("invalid", f"{self._name(0)}: {said[0].reason}")
        first, second = votes["first"], votes["second"]
        return _Said("ok", verdict="first" if first > second else "second" if second > first else "tie")

    def _mean(self, said: Sequence[_Said]) -> _Said:
        for number, one in enumerate(said):
            if one.margin is None:
                return _Said("invalid", f"{self._name(number)}: {one.reason or 'no margin to average'}")
        margin = fmean(one.margin for one in said if one.margin is not None)
        return _Said("ok", verdict="first" if margin > 0 else "second" if margin < 0 else "tie", margin=margin)

    def _name(self, number: int) -> str:
        return self.jurors[number].card.address


def _in_turn(asked: Sequence[Generator[tuple[int, Outcome]]]) -> Generator[tuple[int, Outcome]]:
    """One reply of each juror after the other; requests to hosted jurors that have begun go on in the background.

    A juror that is refused for money ends the others only after they have handed over what is under way: it is paid.
    """
    refusal: BudgetError | None = None
    open_jurors = deque(asked)
    with ExitStack() as stack:
        for replies in asked:
            stack.callback(replies.close)
        while open_jurors:
            replies = open_jurors.popleft()
            try:
                reply = next(replies)
            except StopIteration:
                continue
            except BudgetError as error:
                refusal = error
                continue
            open_jurors.append(replies)
            yield reply
    if refusal is not None:
        raise refusal


def _by_scores(first: Outcome, second: Outcome) -> _Said:
    if first.score is None or second.score is None:
        return _Said("invalid", "the model gave no score")
    margin = first.score - second.score
    return _Said("ok", verdict="first" if margin > 0 else "second" if margin < 0 else "tie", margin=margin)


def seated(model: Any, view: View) -> tuple[Any, View]:
    """Return the model that a view asks, and the view it gets: the juror of a juror's view, else the model itself."""
    if isinstance(view, JurorAnswer):
        return model.jurors[view.juror], AnswerView(**_fields(view))
    if isinstance(view, JurorPair):
        return model.jurors[view.juror], PairView(**_fields(view))
    return model, view


def _fields(view: View) -> dict[str, Any]:
    return {field.name: getattr(view, field.name) for field in fields(view) if field.name != "juror"}
