"""Candidates: what there is to choose among, written once by the policy and shared by all reward models.

Each text is kept under a content key of who was asked what, so a study that is continued, or that is given more items
or a larger N, draws only what is missing. A text that the token limit cut off ends with its last whole sentence; one of
which nothing is left is invalid, is counted, and its place is drawn anew a few times.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from prbench.calls import Budget, Journal
from prbench.config import digest
from prbench.data import hash_text
from prbench.errors import ConfigError, StudyError
from prbench.models import Generator, ModelCard
from prbench.studies.best_of_n.config import BestOfNConfig
from prbench.studies.best_of_n.items import StudyItem
from prbench.studies.policy import Style, draw_styles, policy_prompt
from prbench.texts import nonsense
from prbench.types import Frozen, Outcome, Pair, Prompt, Status, read_stances

FILE = "candidates.jsonl"
EMPTY = "empty"
TRIES = 3
"""Number of times a place is drawn until its text is valid."""

_STOP = re.compile(r"[.!?…][\"'”’)\]*]*(?=\s|$)")
_LIST_NUMBER = re.compile(r"(?:^|\n|[.!?…:][\"'”’)\]*]*)\s*\d{1,2}$")


class Candidate(Frozen):
    """One line of `candidates.jsonl`: a text, or why there is none."""

    key: str
    """Content hash over policy, prompt, decoding and number."""
    question: str = ""
    style: str = ""
    """Name of the style that the policy was asked for."""
    poles: Mapping[str, str] = {}
    """Pole that it was written for, by axis, where the policy was told one."""
    attempt: int = 0
    status: Status = "ok"
    text: str = ""
    cut: bool = False
    """Whether the token limit cut it off, so that it was trimmed to its last whole sentence."""
    reason: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    latency_ms: float = 0.0


class Slot(NamedTuple):
    """One place among an item's candidates, to be filled by the policy."""

    key: str
    prompt: Prompt
    number: int
    """Number of the text among those for this very prompt."""
    style: str
    question: str
    poles: tuple[tuple[str, str], ...] = ()
    """Axes and poles that the policy is told to write for."""


def item_slots(item: StudyItem, settings: BestOfNConfig, card: ModelCard) -> list[Slot]:
    """The N places of an item. Without posts they depend on the question alone, so all who ask it share them."""
    counted: Counter[Prompt] = Counter()
    slots = []
    for style, poles in _instructions(item, settings):
        prompt = policy_prompt(item.pair, posts=settings.posts, style=style.instruction, words=settings.words)
        number = counted[prompt]
        counted[prompt] += 1
        who = list(card.identity.values())
        how = [settings.temperature, settings.max_tokens, settings.seed, number]
        key = digest([who, prompt.messages, how])[:16]
        slots.append(Slot(key, prompt, number, style.name, hash_text(item.pair.question)[:16], poles))
    return slots


def _instructions(item: StudyItem, settings: BestOfNConfig) -> list[tuple[Style, tuple[tuple[str, str], ...]]]:
    """Return the instruction for each of the N places: a style, or in turn each choice of poles of the rubric."""
    if not settings.poles:
        return [(style, ()) for style in draw_styles(settings.n, item.pair.question, settings.seed)]
    axes = sorted(read_stances(item.tags))
    if missing := [axis for axis in axes if len(settings.poles.get(axis, ())) != 2]:
        raise ConfigError(
            f"item {item.id!r}: there are no instructions for the two poles of axis {missing[0]!r}",
            hint="add [poles.AXIS] with an instruction for each pole to the file of --from",
        )
    choices = [
        tuple(zip(axes, poles, strict=True)) for poles in product(*(sorted(settings.poles[axis]) for axis in axes))
    ]
    told = [choices[place % len(choices)] for place in range(settings.n)]
    return [
        (Style("+".join(f"{a}={p}" for a, p in poles), " ".join(settings.poles[a][p] for a, p in poles)), poles)
        for poles in told
    ]


def read_candidates(path: Path) -> dict[str, Candidate]:
    """Candidates by key, a later line in the place of an earlier one."""
    return _journal(path).answers


def _journal(path: Path) -> Journal[str, Candidate]:
    hint = "remove the line, and its text is written again"
    return Journal(path, Candidate, lambda candidate: candidate.key, raises=StudyError, hint=hint)


def open_slots(slots: Mapping[str, Slot], known: Mapping[str, Candidate]) -> dict[int, list[Slot]]:
    """Places without a valid text that may still be tried, by the number of the attempt."""
    waiting: dict[int, list[Slot]] = defaultdict(list)
    for key, slot in slots.items():
        found = known.get(key)
        if found is None:
            waiting[0].append(slot)
        elif found.status == "failed":
            waiting[found.attempt].append(slot)
        elif found.status == "invalid" and found.attempt + 1 < TRIES:
            waiting[found.attempt + 1].append(slot)
    return waiting


def draw_candidates(
    path: Path,
    slots: Mapping[str, Slot],
    policy: Generator,
    settings: BestOfNConfig,
    heard: Callable[[Candidate], None] = lambda candidate: None,
    budget: Budget | None = None,
) -> dict[str, Candidate]:
    """Have every open place filled, text by text on disk, and return all candidates.

    A place that failed is tried once in each call; an invalid one until it is valid or has had its tries.
    """
    failed: set[str] = set()
    budget = budget or Budget()
    with _journal(path) as journal, budget.metering("candidates"):
        journal.open()
        while waiting := open_slots({key: slot for key, slot in slots.items() if key not in failed}, journal.answers):
            attempt = min(waiting)
            for candidate, cost_usd in _draw(waiting[attempt], attempt, policy, settings):
                journal.keep(candidate)
                if candidate.status == "failed":
                    failed.add(candidate.key)
                heard(candidate)
                budget.take(cost_usd)
        return journal.answers


def _draw(
    slots: Sequence[Slot], attempt: int, policy: Generator, settings: BestOfNConfig
) -> Iterator[tuple[Candidate, float]]:
    """Have texts written for places; yields each with what it cost."""
    by_prompt: dict[Prompt, dict[int, Slot]] = defaultdict(dict)
    for slot in slots:
        by_prompt[slot.prompt][slot.number] = slot
    by_count: dict[int, list[Prompt]] = defaultdict(list)
    for prompt, numbers in by_prompt.items():
        by_count[max(numbers) + 1].append(prompt)
    for count, prompts in sorted(by_count.items()):
        written = policy.generate(
            prompts,
            n=count,
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            seed=settings.seed + 7919 * attempt,
        )
        for index, outcomes in written:
            for number, outcome in enumerate(outcomes):
                if found := by_prompt[prompts[index]].get(number):
                    read = read_text(found, outcome, attempt, sense=settings.drop_nonsense)
                    yield read, outcome.cost_usd


def read_text(slot: Slot, outcome: Outcome, attempt: int = 0, *, sense: bool = False) -> Candidate:
    """A policy's reply as a candidate; with `sense` what is nonsense by rule is invalid.

    Example:
        >>> slot = Slot("k", Prompt(()), 0, "plain", "q")
        >>> cut = Outcome(status="ok", raw="Try green tea. It is m", reason="cut off after 9 tokens")
        >>> read_text(slot, cut).text
        'Try green tea.'
        >>> read_text(slot, Outcome(status="ok", raw=" ")).status
        'invalid'
    """
    cut = outcome.status == "ok" and bool(outcome.reason)
    text = whole_sentences(outcome.raw) if cut else outcome.raw.strip()
    empty = outcome.status == "ok" and not text
    reason = ("no whole sentence before the cut" if cut else EMPTY) if empty else "" if cut else outcome.reason
    wrong = nonsense(text) if sense and text and outcome.status == "ok" else None
    return Candidate(
        key=slot.key,
        question=slot.question,
        style=slot.style,
        poles=dict(slot.poles),
        attempt=attempt,
        status="invalid" if empty or wrong else outcome.status,
        text="" if outcome.status != "ok" else text,
        cut=cut,
        reason=f"nonsense: {wrong}" if wrong else reason,
        tokens_in=outcome.tokens_in,
        tokens_out=outcome.tokens_out,
        latency_ms=outcome.latency_ms,
    )


def whole_sentences(text: str) -> str:
    """A text up to the end of its last whole sentence; the number of a list's line ends none.

    Example:
        >>> whole_sentences("1. Walk. 2. Rest! 3. Dri")
        '1. Walk. 2. Rest!'
        >>> whole_sentences("and so on and")
        ''
    """
    ends = [stop.end() for stop in _STOP.finditer(text) if not _LIST_NUMBER.search(text[: stop.start()])]
    return text[: ends[-1]].strip() if ends else ""


def suite_candidates(pairs: Sequence[Pair], seed: int = 0) -> dict[str, list[Candidate]]:
    """The suite's own answers to each question, in an order drawn by the seed: its first N are a fair sample.

    They are sound ones, known to differ in what people differ about.
    """
    texts: dict[str, dict[str, None]] = defaultdict(dict)
    for pair in pairs:
        texts[pair.question].update({pair.chosen: None, pair.rejected: None})
    return {
        question: [
            Candidate(
                key=digest(["suite", question, text])[:16], question=hash_text(question)[:16], style="suite", text=text
            )
            for text in sorted(found, key=lambda text: digest([seed, question, text]))
        ]
        for question, found in texts.items()
    }
