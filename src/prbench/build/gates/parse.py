"""Gates by name, as typed: `length-ratio=1.3`, `no:language`. All that can run are on unless they are left out."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from prbench.build.gates.copying import RubricCopying
from prbench.build.gates.couples import WholeCouples
from prbench.build.gates.duplicates import NearDuplicates
from prbench.build.gates.gate import Gate
from prbench.build.gates.language import SameLanguage
from prbench.build.gates.leakage import ProfileLeakage
from prbench.build.gates.length import LengthRatio
from prbench.build.gates.quality import EqualQuality
from prbench.build.gates.rubric import Margins, RubricMargin, TwoRaters
from prbench.errors import ConfigError, did_you_mean
from prbench.graders import RubricJudge, shares
from prbench.models import Generator


class Raters(NamedTuple):
    """The models that gates may ask."""

    margins: tuple[Margins, ...] = ()
    generator: Generator | None = None


class Kind(NamedTuple):
    """Facts of a gate that are known before it is made."""

    summary: str
    default: float | None
    """Default threshold; None where it has none."""
    bounds: tuple[float, float]
    make: Callable[[float, Raters], Gate]
    judges: int = 0
    """Number of judges that it needs."""
    generator: bool = False

    @property
    def whole(self) -> bool:
        """Whether the threshold counts something."""
        return isinstance(self.default, int)


def _quality(most: float, raters: Raters) -> Gate:
    if raters.generator is None:
        raise ValueError("quality needs a generator")
    return EqualQuality(raters.generator, most)


KINDS: Mapping[str, Kind] = {
    "length-ratio": Kind(
        "longest ÷ shortest answer in words, at most", 1.5, (1, 100), lambda most, _: LengthRatio(most)
    ),
    "rubric-copying": Kind("words of the rubric in a row", 6, (2, 60), lambda run, _: RubricCopying(int(run))),
    "profile-leakage": Kind("words of a post in a row", 8, (2, 60), lambda run, _: ProfileLeakage(int(run))),
    "language": Kind(
        "share of a text in another language, at most", 0.25, (0, 0.5), lambda foreign, _: SameLanguage(foreign)
    ),
    "near-duplicates": Kind("similarity of two answers, from", 0.5, (0.05, 1), lambda least, _: NearDuplicates(least)),
    "quality": Kind(
        "points (of 10) between the answers, blind to the user, at most", 2.0, (0, 9), _quality, generator=True
    ),
    "rubric-margin": Kind(
        "rubric grade (0 to 2) of chosen less rejected, at least",
        1.0,
        (0, 2),
        lambda least, raters: RubricMargin(raters.margins[0], least),
        judges=1,
    ),
    "agreement": Kind(
        "two judges prefer the same answer",
        None,
        (0, 0),
        lambda _, raters: TwoRaters(*raters.margins[:2]),
        judges=2,
    ),
}
"""Kinds in the order in which they look: what costs nothing first, then what asks models, so that little is paid for.
"""


def parse_gates(
    specs: Sequence[str] = (), *, judges: Sequence[RubricJudge] = (), generator: Generator | None = None
) -> list[Gate]:
    """Make gates of what a user typed; all others come with their default.

    Args:
        specs: `NAME`, `NAME=THRESHOLD` or `no:NAME`. A gate that is named must be able to run; of the others, those
            whose judges or generator were not given are left out (see `left_out`).
        judges: For `rubric-margin`, two for `agreement`.
        generator: For `quality`.

    Example:
        >>> [gate.name for gate in parse_gates(["length-ratio=1.3", "no:language"])]
        ['couples', 'length-ratio', 'rubric-copying', 'profile-leakage', 'near-duplicates']
        >>> parse_gates(["lenght-ratio=1.3"])
        Traceback (most recent call last):
        prbench.errors.ConfigError: unknown gate 'lenght-ratio'
        <BLANKLINE>
        hint: did you mean 'length-ratio'?
    """
    named, without = _read(specs)
    raters = Raters(tuple(map(Margins, judges)), generator)
    gates: list[Gate] = [WholeCouples()]
    for name, kind in KINDS.items():
        if name in without:
            continue
        if lacking := _lacking(name, kind, raters):
            if name in named:
                raise lacking
            continue
        threshold = named.get(name, kind.default)
        gates.append(kind.make(0.0 if threshold is None else threshold, raters))
    return gates


def left_out(gates: Sequence[Gate]) -> tuple[str, ...]:
    """The known gates that are not among these: a report should name what was not looked at.

    Example:
        >>> left_out(parse_gates(["no:language"]))
        ('language', 'quality', 'rubric-margin', 'agreement')
    """
    there = {gate.name for gate in gates}
    return tuple(name for name in KINDS if name not in there)


def _read(specs: Sequence[str]) -> tuple[dict[str, float | None], set[str]]:
    """The thresholds of the gates that were named, and the gates to leave out."""
    named: dict[str, float | None] = {}
    without: set[str] = set()
    for spec in specs:
        leave = spec.startswith("no:")
        name, equals, value = (part.strip() for part in spec.removeprefix("no:").partition("="))
        if name not in KINDS:
            raise ConfigError(f"unknown gate {name!r}", hint=did_you_mean(name, KINDS))
        if name in named or name in without:
            raise ConfigError(f"gate {name!r} is named twice", hint="name it once")
        if leave and equals:
            raise ConfigError(f"gate {spec!r} has a threshold and is left out", hint=f"write no:{name}")
        if leave:
            without.add(name)
        else:
            named[name] = _threshold(name, value) if equals else KINDS[name].default
    return named, without


def _threshold(name: str, value: str) -> float:
    kind = KINDS[name]
    if kind.default is None:
        raise ConfigError(f"gate {name!r} takes no threshold, got {value!r}", hint=f"write {name}")
    low, high = kind.bounds
    hint = (
        f"{kind.summary}: a {'whole ' * kind.whole}number from {low:g} to {high:g}, for example {name}={kind.default:g}"
    )
    try:
        number = float(value)
    except ValueError as error:
        raise ConfigError(f"gate {name!r}: {value!r} is not a number", hint=hint) from error
    if not low <= number <= high or (kind.whole and not number.is_integer()):
        raise ConfigError(f"gate {name!r}: the threshold cannot be {value}", hint=hint)
    return number


def _lacking(name: str, kind: Kind, raters: Raters) -> ConfigError | None:
    """Return the error for what a gate would need and has not, with the way out."""
    leave = f"or leave the gate out: no:{name}"
    if kind.generator and raters.generator is None:
        return ConfigError(f"gate {name!r} needs a model that rates answers", hint=f"give --rater MODEL, {leave}")
    if len(raters.margins) < kind.judges:
        needs = "a judge" if kind.judges == 1 else f"{kind.judges} judges, got {len(raters.margins)}"
        times = " twice" if kind.judges == 2 else ""
        return ConfigError(f"gate {name!r} needs {needs}", hint=f"give --judge{times}, {leave}")
    if kind.judges == 2:
        one, other = (margins.judge.card for margins in raters.margins[:2])
        if common := shares(one, other):
            return ConfigError(f"gate {name!r}: both judges are {common}", hint=f"give two different judges, {leave}")
    return None
