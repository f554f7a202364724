"""A synthetic world for the gates: users, rubrics, questions and answers, with violations planted at known places.

Texts are drawn from frames, a different set for each kind of text, so that nothing is shared by chance. Raters
(`gate_raters.py`) read planted words: a judge grades an aspect by how often its cue stands in the answer, and a blind
rater takes a point off for each blemish. Clean drafts include near misses: one step on the good side of every line.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from prbench.build.draft import Draft
from prbench.texts import words
from prbench.types import Aspect, Post


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NOUNS = _words(
    "lantern harbour orchard saddle kettle violin meadow ledger compass garden window basket anchor marble "
    "thistle candle drawer ribbon hammer bridge tunnel pillow mirror barrel curtain ladder needle parcel pencil "
    "pocket saucer shovel spider tablet ticket turnip valley wagon walnut willow zipper acorn badger cactus dagger"
)
ADJECTIVES = _words(
    "amber brisk calm dusty eager faint gentle hollow icy jagged keen loose mellow narrow odd plain quiet rough "
    "steady tender upright vivid warm young zesty bitter clumsy dense early frail"
)
VERBS = _words(
    "carry fasten gather honour inspect loosen mend notice polish repair sharpen shelter stretch trim unpack"
)
CUES = _words("thrift haste comfort tradition novelty solitude humour precision courage symmetry patience luxury")

FRAMES = (
    "You can {v} the {a} {n} while a {a} {n} is near.",
    "If that is {a}, {v} your {n} and {v} the {n}.",
    "Most of them would {v} a {n}, but not with {a} {n}s.",
    "There is no {a} {n} which will {v} it for you.",
    "Do {v} some {n}s, because these are {a} and {a}.",
    "When the {n} is {a}, they will {v} a {n} or {v} the {n}.",
)
POST_FRAMES = (
    "Last {n} season we had to {v} an {a} {n} by ourselves.",
    "Has anybody here ever tried to {v} such {a} {n}s?",
    "My {n} broke again and I {v} everything twice a {n}.",
    "Somewhere between {n} and {n} I began to {v} {a} things.",
)
GERMAN = (
    "Man kann die {n} mit einem {n} und der {n} nicht vergleichen.",
    "Wenn das {n} noch da ist, werden wir auch den {n} haben.",
    "Sie sind nur für einen {n} bei der {n}, aber nicht ohne {n}.",
    "Ich habe schon immer gern einen {n} zum {n} gehabt.",
)
LOANS = "There is a {a} zeitgeist of schadenfreude, a kindergarten of déjà vu and no {n} à la carte."
QUOTATION = "Der {n} ist nicht für die {n}."
BLEMISHES = ("allegedly", "irrelevantly", "uselessly")
"""Each takes a point off factuality, relevance or helpfulness."""


@dataclass
class World:
    """Drafts, and for each gate the ids that it must refuse."""

    drafts: list[Draft] = field(default_factory=list)
    planted: dict[str, set[str]] = field(default_factory=dict)
    blank: dict[str, set[str]] = field(default_factory=dict)
    """Those of them that cannot be measured."""
    halves: set[str] = field(default_factory=set)
    """Drafts that are clean, but whose other half is not."""
    near_misses: set[str] = field(default_factory=set)

    @property
    def clean(self) -> set[str]:
        """What every gate must let pass."""
        return {draft.id for draft in self.drafts} - self.halves - set().union(*self.planted.values())


class Scribe:
    """Writes the texts of a world from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def fill(self, frame: str) -> str:
        for slot, pool in (("{n}", NOUNS), ("{a}", ADJECTIVES), ("{v}", VERBS)):
            while slot in frame:
                frame = frame.replace(slot, self.random.choice(pool), 1)
        return frame

    def prose(self, length: int, frames: Sequence[str] = FRAMES, opening: str = "") -> str:
        """Exactly so many words, after the opening."""
        text = opening
        while len(words(text)) < length:
            text = f"{text} {self.fill(self.random.choice(frames))}".strip()
        while len(words(text)) > length:
            text = text.rsplit(" ", 1)[0].rstrip(",.") + "."
        return text

    def answer(self, cues: Sequence[str], length: int = 60, opening: str = "") -> str:
        """An answer with these cues, each in a sentence of its own."""
        marked = " ".join(self.fill(f"Your {{n}} has {cue}.") for cue in cues)
        return self.prose(length, opening=f"{opening} {marked}".strip())

    def question(self) -> str:
        return self.fill("How should I {v} the {a} {n} when my {n} is {a} and {a} too?")

    def profile(self, user: str, name: str) -> tuple[Post, ...]:
        texts = [self.prose(40, POST_FRAMES) for _ in range(6)]
        texts[2] += f" So said my friend {name}, who writes from {name.lower()}@example.org and is at 0171 555 01 23."
        return tuple(Post(id=f"{user}-{number}", text=text) for number, text in enumerate(texts))

    def aspect(self, cue: str) -> Aspect:
        title = self.fill(f"Grants room to {cue} among {{a}} {{n}} folk")
        return Aspect(aspect=title, reason=self.fill("Earlier {n} letters praised it whenever {a} {n} talk arose."))


NAMES = _words("Milena Tobias Ingrid Rafael Saoirse Anselm Bettina Cosimo")


class Builder:
    """Makes a world, one kind of draft after the other."""

    def __init__(self, seed: int, users: int = 6) -> None:
        self.scribe = Scribe(seed)
        self.world = World()
        self.people = []
        for number in range(users):
            name = NAMES[number % len(NAMES)]
            cues = self.scribe.random.sample(CUES, 2)
            user = f"user-{number}"
            aspects = tuple(self.scribe.aspect(cue) for cue in cues)
            self.people.append((user, name, cues, aspects, self.scribe.profile(user, name)))

    def build(self) -> World:
        for number, (user, name, cues, aspects, profile) in enumerate(self.people):
            self.now = (user, name, cues, aspects, profile)
            for kind in KINDS:
                kind(self, self._clean(f"{user}/{kind.__name__.strip('_')}"))
            self._couples(self.people[number - 1])
        self.scribe.random.shuffle(self.world.drafts)
        return self.world

    def plant(self, draft: Draft, *gates: str, blank: bool = False, **changes: object) -> Draft:
        """Add a draft with these changes, which these gates must refuse."""
        sides = "".join(sorted(name[0] for name in changes))
        draft = draft.model_copy(update={"id": f"{draft.id}-{len(self.world.drafts)}{sides}", **changes})
        self.world.drafts.append(draft)
        for gate in gates:
            self.world.planted.setdefault(gate, set()).add(draft.id)
            if blank:
                self.world.blank.setdefault(gate, set()).add(draft.id)
        return draft

    def spare(self, draft: Draft, **changes: object) -> Draft:
        """Add a near miss, which no gate may refuse."""
        draft = self.plant(draft, **changes)
        self.world.near_misses.add(draft.id)
        return draft

    def answer(self, *counts: int, length: int = 60, opening: str = "") -> str:
        """An answer in which each of the user's cues stands so many times."""
        cues = [cue for cue, count in zip(self.now[2], counts, strict=True) for _ in range(count)]
        return self.scribe.answer(cues, length, opening)

    def _clean(self, name: str) -> Draft:
        user, _, _, aspects, profile = self.now
        chosen, rejected = self.answer(2, 2), self.answer(0, 0)
        question = self.scribe.question()
        return Draft(
            id=name,
            user=user,
            question=question,
            profile=profile,
            aspects=aspects,
            narrative=self.scribe.prose(30, POST_FRAMES),
            chosen=chosen,
            rejected=rejected,
        )

    def _couples(self, other: tuple) -> None:
        """One clean couple, one of which a half violates a gate, and one of which a half was never written."""
        user, _, cues, _, _ = self.now
        theirs = [cue for cue in CUES if cue not in cues][:2]
        aspects = tuple(self.scribe.aspect(cue) for cue in theirs)
        for kind in ("clean", "weak", "lone"):
            tag = f"{user}-{kind}"
            answer = self.scribe.answer([theirs[0]] * (1 if kind == "weak" else 2) + [theirs[1]] * 2 * (kind != "weak"))
            one = self._clean(f"{tag}-a").model_copy(update={"rejected": answer, "tags": {"mirror": tag}})
            half = one.swapped(id=f"{tag}-b", user=other[0], profile=other[4], aspects=aspects)
            if kind == "lone":
                self.plant(one, "couples", id=one.id)
                continue
            self.world.drafts += [one, half]
            if kind == "weak":  # the other user's rubric is met in part only: margin 0.5
                self.world.planted.setdefault("rubric-margin", set()).add(half.id)
                self.world.halves.add(one.id)


def _nothing(build: Builder, draft: Draft) -> None:
    build.plant(draft)


def _length(build: Builder, draft: Draft) -> None:
    build.plant(draft, "length-ratio", chosen=build.answer(2, 2, length=91))
    build.plant(draft, "length-ratio", chosen=build.answer(2, 2, length=39), rejected=build.answer(0, 0, length=59))
    build.spare(draft, chosen=build.answer(2, 2, length=90), rejected=build.answer(0, 0))
    build.spare(draft, chosen=build.answer(2, 2, length=40), rejected=build.answer(0, 0))


def _copying(build: Builder, draft: Draft) -> None:
    title = draft.aspects[0].aspect
    reason = draft.aspects[1].reason.split()
    build.plant(draft, "rubric-copying", chosen=build.answer(1, 2, opening=f"A friend {title}."))
    build.plant(
        draft, "rubric-copying", chosen=build.answer(2, 2), rejected=_open(build, " ".join(reason[2:8]).lower())
    )
    build.spare(draft, chosen=build.answer(2, 2), rejected=_open(build, " ".join(reason[2:7]).lower()))
    build.spare(  # the question's own words
        draft,
        question=f"Which shop {title.lower()} and where is it?",
        chosen=build.answer(1, 2, opening=f"None {title.lower()}."),
        rejected=build.answer(0, 0),
    )


def _leakage(build: Builder, draft: Draft) -> None:
    name = build.now[1]
    post, narrative = (" ".join(words(text)) for text in (draft.profile[3].text, draft.narrative))
    fresh = {"chosen": build.answer(2, 2)}
    build.plant(draft, "profile-leakage", **fresh, rejected=_open(build, _first(post, 8)))
    fresh = {"rejected": build.answer(0, 0)}
    build.plant(draft, "profile-leakage", **fresh, chosen=build.answer(2, 2, opening=f"So {_first(narrative, 8)}."))
    for detail in (name, f"{name.lower()}@example.org", "0171-5550123"):
        build.plant(draft, "profile-leakage", chosen=build.answer(2, 2), rejected=_open(build, f"to {detail} and"))
    build.spare(draft, chosen=build.answer(2, 2), rejected=_open(build, _first(post, 7)))
    build.spare(  # who is named in the question may be named in the answer
        draft,
        question=f"Should I tell {name} about the old {build.scribe.fill('{n}')}, {_first(post, 9)}?",
        chosen=build.answer(2, 2, opening=f"Tell {name} that {_first(post, 9)}."),
        rejected=build.answer(0, 0),
    )
    build.spare(draft, chosen=build.answer(2, 2), rejected=_open(build, "the million of 1 000 0000 paces and"))


def _duplicates(build: Builder, draft: Draft) -> None:
    chosen = build.answer(2, 2)
    # But for the last words, the answers are one text.
    body = build.scribe.prose(52)
    build.plant(
        draft,
        "near-duplicates",
        chosen=_with_cues(build, body, 2),
        rejected=_with_cues(build, body, 0),
    )
    first = build.plant(draft, chosen=chosen, rejected=build.answer(0, 0))
    later = first.model_copy(update={"id": f"z-{draft.id}", "user": "somebody else", "profile": ()})
    swap = chosen.split()
    swap[30] = "otherwise"
    build.plant(later, "near-duplicates", chosen=" ".join(swap), rejected=build.answer(0, 0), question="And then?")
    shared = build.scribe.prose(40)  # 36 of 2 × 56 − 36 5-grams are shared: a similarity of 0.47
    build.spare(
        draft,
        chosen=build.answer(2, 2, opening=shared),
        rejected=build.answer(0, 0, opening=shared),
        question="Why so?",
    )


def _language(build: Builder, draft: Draft) -> None:
    german = build.scribe.prose(60, GERMAN)
    other = build.scribe.prose(60, GERMAN)
    cued = " ".join(f"Das ist {cue} für die Leute." for cue in build.now[2] for _ in range(2)) + " " + other
    build.plant(draft, "language", rejected=german, chosen=build.answer(2, 2, length=70))
    build.plant(draft, "language", chosen=cued, rejected=build.scribe.prose(60, GERMAN))
    half = build.answer(2, 2, length=30) + " " + build.scribe.prose(30, GERMAN)
    build.plant(draft, "language", chosen=half, rejected=build.answer(0, 0))
    build.spare(draft, chosen=build.answer(2, 2, opening=build.scribe.fill(LOANS)), rejected=build.answer(0, 0))
    quoting = build.scribe.fill(QUOTATION) + " " + build.answer(0, 0, length=60)
    build.spare(draft, chosen=build.answer(2, 2), rejected=quoting)
    build.spare(draft, chosen=build.answer(2, 2), rejected=build.answer(0, 0), question="Lantern?")
    build.plant(
        draft, "language", blank=True, chosen=_gibberish(build, 2), rejected=_gibberish(build, 0), question="Eh?"
    )


def _margin(build: Builder, draft: Draft) -> None:
    build.plant(draft, "rubric-margin", chosen=build.answer(1, 0), rejected=build.answer(0, 0))
    build.plant(draft, "rubric-margin", "agreement", chosen=build.answer(1, 1), rejected=build.answer(1, 1))
    build.plant(draft, "rubric-margin", "agreement", chosen=build.answer(0, 0), rejected=build.answer(2, 2))
    for word in ("illegible", "unreachable"):
        changes = {"chosen": build.answer(2, 2), "rejected": _open(build, f"in {word} form")}
        build.plant(draft, "rubric-margin", "agreement", blank=True, **changes)
    build.plant(
        draft,
        "rubric-margin",
        "agreement",
        blank=True,
        aspects=(),
        chosen=build.answer(2, 2),
        rejected=_open(build, "so"),
    )
    build.spare(draft, chosen=build.answer(1, 1), rejected=build.answer(0, 0))
    build.spare(draft, chosen=build.answer(2, 2), rejected=build.answer(1, 1))


def _agreement(build: Builder, draft: Draft) -> None:
    """The second judge takes what is said contrariwise for its opposite."""
    opposite = {"opening": "It is contrariwise."}
    build.plant(draft, "agreement", chosen=build.answer(2, 2, **opposite), rejected=build.answer(0, 0))
    build.plant(draft, "agreement", chosen=build.answer(2, 2), rejected=build.answer(0, 0, **opposite))
    build.plant(draft, "agreement", chosen=build.answer(2, 2, **opposite), rejected=build.answer(0, 0, **opposite))
    build.spare(draft, chosen=build.answer(2, 2), rejected=build.answer(0, 1, **opposite))  # margins 1.5 and 0.5


def _quality(build: Builder, draft: Draft) -> None:
    for blemish in BLEMISHES:
        build.plant(draft, "quality", chosen=build.answer(2, 2), rejected=_open(build, _times(blemish, 3)))
        build.spare(draft, chosen=build.answer(2, 2), rejected=_open(build, _times(blemish, 2)))
    bad = build.answer(2, 2, opening=f"Well, {_times(BLEMISHES[0], 3)} so.")
    build.plant(draft, "quality", chosen=bad, rejected=build.answer(0, 0))
    build.spare(  # both poor in the same way
        draft,
        chosen=build.answer(2, 2, opening=f"Well, {_times(BLEMISHES[2], 5)} so."),
        rejected=_open(build, _times(BLEMISHES[2], 4)),
    )
    for word in ("mumbled", "disconnected"):
        build.plant(draft, "quality", blank=True, chosen=build.answer(2, 2), rejected=_open(build, f"it {word} so"))


KINDS: Sequence[Callable[[Builder, Draft], None]] = (
    _nothing,
    _length,
    _copying,
    _leakage,
    _duplicates,
    _language,
    _margin,
    _agreement,
    _quality,
)


def _first(text: str, count: int) -> str:
    return " ".join(text.split()[:count])


def _open(build: Builder, words: str) -> str:
    """A rejected answer that opens with these words."""
    return build.answer(0, 0, opening=f"Well, {words}.")


def _times(word: str, count: int) -> str:
    return " or ".join([word] * count)


def _with_cues(build: Builder, body: str, count: int) -> str:
    cued = [cue for cue in build.now[2] for _ in range(count)] or ["nothing", "nobody", "nowhere", "never"]
    return body.rstrip(".") + " of " + ", ".join(cued) + "."


def _gibberish(build: Builder, count: int) -> str:
    cues = [cue for cue in build.now[2] for _ in range(count)]
    made = ["".join(build.scribe.random.choices("bcdfghjkqvwxz", k=7)) for _ in range(40 - len(cues))]
    return " ".join(made + cues) + "."
