"""The suites that have a name: embedded in the package, or published on the hub.

An embedded suite is a file `embedded/NAME.parquet` or `.jsonl` beside this module; one whose file is absent does not
exist. Where a suite has versions, `NAME` is the newest, and `NAME@VERSION` any of them; an older one is a file
`embedded/NAME-VERSION.parquet`. `NAME+posts` is derived: the pairs of NAME, shown with the posts of `mirror`'s people
of the same version. A published suite is loaded from the hub, or from a local copy written `NAME=DIR` or
`NAME=FILE`.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Literal, NamedTuple

from prbench.data import recipes
from prbench.data.hub_tables import WHOLE
from prbench.data.recipes import Recipe

Kind = Literal["pairs", "questions"]

GROUP = "prbench.suites"

_EMBEDDED_FOLDER = Path(__file__).parent / "embedded"
_EMBEDDED = {
    "mirror": "couples of opposite personas who meet the same two answers and want opposite ones",
    "generic": "sound against subtly flawed answers: general quality, nothing personal",
    "generic+posts": "generic with a user's posts beside each question: does following the user cost soundness?",
    "starter": "a handful of hand-written mirrored pairs to try things on",
}
_NEWEST = {"mirror": 2, "generic": 2, "generic+posts": 2}
"""The newest version of each suite that has versions."""
_WITH_POSTS = "+posts"


class SuiteInfo(NamedTuple):
    """Description of a suite, as `prbench suites` prints it."""

    name: str
    summary: str
    where: str
    kind: Kind


class HubSuite(NamedTuple):
    """A suite on the hub."""

    name: str
    summary: str
    kind: Kind
    repo: str
    split: str
    """The split of files that do not name one."""
    tables: tuple[str, ...]
    recipe: Recipe
    own_splits: bool = False
    """Whether the recipe says of which split a row is, whatever the hub calls its own."""
    on_hub: bool = True


_CATEGORIES = {
    "Art": "Art_and_Entertainment",
    "Lifestyle": "Lifestyle_and_Personal_Development",
    "Society": "Society_and_Culture",
}

_PUBLISHED = (
    HubSuite(
        "prb",
        "Personalized RewardBench: the paper's 2,830 pairs",
        "pairs",
        "QiyaoMa/Personalized-RewardBench",
        "test",
        tuple(_CATEGORIES.values()),
        recipes.paper,
    ),
    HubSuite(
        "lamp-qa",
        "LaMP-QA: questions with profile, narrative and rubric, no answers",
        "questions",
        "alireza7/LaMP-QA",
        "test",
        tuple(_CATEGORIES.values()),
        recipes.paper,
    ),
    HubSuite(
        "prism",
        "PRISM: people's choices among answers at the first turn",
        "pairs",
        "HannahRoseKirk/prism-alignment",
        "train",
        ("survey", "utterances"),
        recipes.prism,
    ),
    HubSuite(
        "arena",
        "Chatbot Arena: single-turn votes of people who asked",
        "pairs",
        "lmsys/chatbot_arena_conversations",
        "train",
        (WHOLE,),
        recipes.arena,
    ),
    HubSuite(
        "rewardbench-2",
        "RewardBench 2: general quality, no users",
        "pairs",
        "allenai/reward-bench-2",
        "test",
        (WHOLE,),
        recipes.rewardbench,
    ),
    HubSuite(
        "rm-bench",
        "RM-Bench: right against subtly wrong answers in three styles each, no users",
        "pairs",
        "THU-KEG/RM-Bench",
        "test",
        (WHOLE,),
        recipes.rm_bench,
        own_splits=True,
    ),
    HubSuite(
        "judgebench",
        "JudgeBench: a correct and a wrong answer of one model, no users",
        "pairs",
        "ScalerLab/JudgeBench",
        "test",
        (WHOLE,),
        recipes.judgebench,
        own_splits=True,
    ),
    HubSuite(
        "personal-rewardbench/arena",
        "PersonalRewardBench: Chatbot Arena users with a few labelled pairs each",
        "pairs",
        "MichaelR207/chatbot_arena_personalized_0125",
        "test",
        (WHOLE,),
        recipes.personal_rewardbench,
        own_splits=True,
    ),
    HubSuite(
        "personal-rewardbench/prism",
        "PersonalRewardBench: PRISM users with a few labelled pairs each",
        "pairs",
        "MichaelR207/prism_personalized_0125",
        "test",
        (WHOLE,),
        recipes.personal_rewardbench,
        own_splits=True,
    ),
    HubSuite(
        "rmgap",
        "RMGAP: four answers, four preferences that want different ones, three ways to say each",
        "pairs",
        "github.com/nanzhi84/RMGAP",
        "test",
        (WHOLE,),
        recipes.rmgap,
        own_splits=True,
        on_hub=False,
    ),
)


def published() -> Mapping[str, HubSuite]:
    """Every suite on the hub by name, parts as `prb/Art` included."""
    found: dict[str, HubSuite] = {}
    for suite in _PUBLISHED:
        found[suite.name] = suite
        if suite.recipe is recipes.paper:
            for short, table in _CATEGORIES.items():
                name, summary = f"{suite.name}/{short}", f"the part {table} of {suite.name}"
                found[name] = suite._replace(name=name, summary=summary, tables=(table,))
    return found


class Embedded(NamedTuple):
    """A suite that ships with this installation."""

    name: str
    """Name of the suite, with its version where it has versions."""
    version: str
    """Version of the suite; empty for a suite without versions."""
    file: Path
    posts: Path | None = None
    """The suite whose people's posts are shown beside the questions of this one."""


def embedded() -> Mapping[str, Embedded]:
    """Every suite that ships with this installation, by each name that it can be asked for by."""
    found: dict[str, Embedded] = {}
    for name in _EMBEDDED:
        newest = _NEWEST.get(name, 0)
        if file := _present(name):
            found[name] = Embedded(f"{name}@{newest}" if newest else name, str(newest or ""), file, _posts(name))
        for version in range(1, newest + 1):
            older = "" if version == newest else f"-{version}"
            if file := _present(name, older):
                found[f"{name}@{version}"] = Embedded(f"{name}@{version}", str(version), file, _posts(name, older))
    return found


def _posts(name: str, older: str = "") -> Path | None:
    return _present("mirror", older) if name.endswith(_WITH_POSTS) else None


def _present(name: str, older: str = "") -> Path | None:
    if name.endswith(_WITH_POSTS) and _present("mirror", older) is None:
        return None
    stem = name.removesuffix(_WITH_POSTS) + older
    files = (_EMBEDDED_FOLDER / f"{stem}{suffix}" for suffix in (".parquet", ".jsonl"))
    return next((file for file in files if file.is_file()), None)


def installed() -> Mapping[str, EntryPoint]:
    """Suites that installed packages offer in the group `prbench.suites`: a path, or a function that returns one."""
    return {point.name: point for point in entry_points(group=GROUP)}


def installed_path(name: str) -> Path:
    """The file or folder of an installed suite."""
    found = installed()[name].load()
    return Path(found() if callable(found) else found)


def suites() -> list[SuiteInfo]:
    """Every suite that can be asked for by name, embedded ones first.

    Example:
        >>> [suite.name for suite in suites() if suite.name.startswith("prb")]
        ['prb', 'prb/Art', 'prb/Lifestyle', 'prb/Society']
    """
    shipped = [
        SuiteInfo(name, _summary(name, suite), "ships with the package", "pairs")
        for name, suite in embedded().items()
        if name != f"{name.partition('@')[0]}@{_NEWEST.get(name.partition('@')[0])}"  # listed by its plain name
    ]
    hub = [SuiteInfo(suite.name, suite.summary, _where(suite), suite.kind) for suite in published().values()]
    own = [SuiteInfo(name, f"from {point.value}", "installed", "pairs") for name, point in installed().items()]
    return shipped + hub + own


def _where(suite: HubSuite) -> str:
    copy = f"a local copy: {suite.name}=DIR"
    return f"hub {suite.repo}, or {copy}" if suite.on_hub else f"{copy}, from {suite.repo}"


def _summary(name: str, suite: Embedded) -> str:
    plain = name.partition("@")[0]
    if not suite.version:
        return _EMBEDDED[plain]
    return f"{_EMBEDDED[plain]} (version {suite.version})" if name == plain else f"version {suite.version} of {plain}"
