"""The report of a study as tables: the claim first, then what it rests on."""

from collections.abc import Callable, Iterator

from prbench.annotate.claim import MIN_ANNOTATORS, MIN_PAIRS
from prbench.annotate.findings import StudyFindings
from prbench.show import Number, Table, count, interval, p_value
from prbench.stats import Estimate


def tables(found: StudyFindings) -> list[Table]:
    """Everything a reader needs, in the order of importance."""
    made = [_quality(found)] if found.quality else []
    return [*made, _preference(found), _agreement(found), _people(found)]


def _quality(found: StudyFindings) -> Table:
    claim = found.claim
    rows = [
        [
            name,
            _points(each.chosen),
            _points(each.rejected),
            _points(each.difference, "+.2f"),
            p_value(each.equivalence.p),
            claim.quality[name] if claim else "",
        ]
        for name, each in found.quality.items()
    ]
    margin = next(iter(found.quality.values())).equivalence.margin
    notes = [
        f"equal: by two one-sided tests at 5 %, the difference is inside ±{margin:g} of the 1–5 scale; different: its "
        "95 % interval excludes 0; not shown: neither",
        *([claim.text] if claim else []),
    ]
    columns = [
        "quality, blind to the user",
        "chosen [95 %]",
        "rejected [95 %]",
        "difference [95 %]",
        "TOST p",
        "quality",
    ]
    return Table(_title(found), columns, rows, notes)


def _preference(found: StudyFindings) -> Table:
    preference = found.preference
    shares = [
        ("meets the label (½ if unsure)", preference.agreement),
        ("could tell", preference.decided),
        ("prefers the answer shown first", preference.first_shown),
    ]
    rows = [[name, interval(share), count(share.n)] for name, share in shares if share is not None]
    notes = [] if found.quality else [_self_note(found)]
    title = "Preference" if found.quality else _title(found)
    return Table(title, ["preference", "% [95 %]", "judgments"], rows, notes)


def _agreement(found: StudyFindings) -> Table:
    preference = found.preference
    rows = [
        ["preference", _points(preference.alpha), _points(preference.kappa), count(preference.alpha.n)],
        *([name, _points(each.alpha), "", count(each.alpha.n)] for name, each in found.quality.items()),
    ]
    columns = ["agreement between annotators", "Krippendorff's α [95 %]", "Fleiss' κ [95 %]", "units"]
    return Table("Agreement", columns, rows, list(_agreement_notes(found)))


def _agreement_notes(found: StudyFindings) -> Iterator[str]:
    if not found.preference.alpha.n:
        yield "no pair was judged by two annotators, so agreement is unknown"
        return
    if found.preference.kappa.n < found.preference.alpha.n:
        yield f"κ rests on {found.preference.kappa.n} pairs, those with the most common number of annotators"
    yield "α is nominal for preference, ordinal for ratings, – where all labels are equal; jackknife over pairs"


def _people(found: StudyFindings) -> Table:
    rows = [
        [
            each.person.name,
            count(each.person.done),
            count(each.person.assigned),
            count(each.changed),
            *([interval(each.agreement)] if each.agreement else []),
        ]
        for each in found.people
        if not each.person.deleted
    ]
    labelled = ["meets the label % [95 %]"] if found.quality else []
    deleted = sum(each.person.deleted for each in found.people)
    notes = [f"{deleted} more deleted their data"] if deleted else []
    return Table("Annotators", ["annotator", "judged", "of", "changed", *labelled], rows, notes)


def _title(found: StudyFindings) -> str:
    dataset = found.study.dataset
    pairs = f"{found.pairs:,} pairs"
    if found.texts < found.pairs:
        pairs += f" of {found.texts:,} different texts"
    return f"{dataset.name} · {found.judgments:,} judgments, {found.annotators} annotators, {pairs}"


def _self_note(found: StudyFindings) -> str:
    preference = found.preference
    text = f"{preference.disputed} pairs are disputed; {preference.mirrored} judgments have an opposite to mirror"
    if found.annotators < MIN_ANNOTATORS or found.texts < MIN_PAIRS:
        return f"{text}; too few annotations to say more"
    return text


def _points(found: Estimate, shape: str = ".2f") -> Number:
    """A number on its own scale with its interval."""
    write: Callable[[float], str] = lambda value: format(value, shape)  # noqa: E731
    if found.value is None:
        return Number("–", None, ranged=True)
    if found.low is None or found.high is None:
        return Number(write(found.value), found.value, ranged=True)
    text = f"{write(found.value)} [{write(found.low)}, {write(found.high)}]"
    return Number(text, found.value, found.low, found.high, ranged=True)
