"""`docs/scorecard.md`: the tables with the command, seed, machine and date that made them."""

from prbench.scorecard.card import Scorecard
from prbench.scorecard.card_tables import curve_tables, scorecard_tables
from prbench.scorecard.curves import CurveSheet
from prbench.show import render


def document(card: Scorecard, sheet: CurveSheet | None, command: str) -> str:
    """The page, as Markdown."""
    sections = ["# Scorecard", _facts(card, command), _sentences(card), render(scorecard_tables(card), "md")]
    if sheet is not None and (tables := curve_tables(sheet)):
        sections += ["## What must be known of a user", render(tables, "md")]
    return "\n\n".join([*sections, _models(card)]) + "\n"


def _facts(card: Scorecard, command: str) -> str:
    settings = card.settings
    rows = [
        ("made by", f"`{command}`, prbench {card.prbench}"),
        ("made at", f"{card.made} (UTC)"),
        ("machine", str(card.machine)),
        ("seed", str(settings.seed)),
        ("pairs", _suite(card.suite.name, settings.part, card.suite.fingerprint)),
    ]
    if card.generic is not None:
        rows.append(("generic pairs", _suite(card.generic.name, settings.generic_part, card.generic.fingerprint)))
    if settings.limit is not None:
        rows.append(("limit", f"at most {settings.limit:,} pairs of each suite"))
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def _suite(name: str, split: str | None, fingerprint: str) -> str:
    return f"`{name}`, {f'split `{split}`' if split else 'all splits'}, fingerprint `{fingerprint[:12]}`"


def _models(card: Scorecard) -> str:
    lines = ["## Models", "", "| row | address | revision |", "|---|---|---|"]
    lines += [f"| {row.name} | `{row.address}` | {_revision(row.revision)} |" for row in card.rows]
    return "\n".join(line.rstrip() for line in lines)


def _revision(revision: str) -> str:
    return f"`{revision[:12]}`" if revision else "–"


def _sentences(card: Scorecard) -> str:
    """The verdict on each model."""
    return "\n".join(f"- {row.sentence}" for row in card.rows if row.sentence)
