"""A correlation as tables: the reward models, the coefficients, the rivals, and under each what may be said."""

from prbench.show import Number, Table, p_value, percent
from prbench.stats import Estimate
from prbench.studies.agreement import Agreement, Correlated, Readers, RivalAgreement, StudyAgreement

_NAMES = {
    "spearman": "Spearman ρ",
    "kendall": "Kendall τ-b",
    "weighted_tau": "weighted τ",
    "rbo": "RBO (p = .9)",
    "ndcg": "NDCG",
    "pearson": "Pearson r",
}


def correlation_tables(found: Correlated) -> list[Table]:
    """Everything that is printed of a correlation, study by study."""
    tables = []
    for study in found.studies:
        tables += [_models(found, study), _coefficients(study)]
        if study.shown_the_user:
            tables.append(_readers(study, study.shown_the_user))
        if study.rivals:
            tables.append(_rivals(study))
    tables.append(_power(found))
    return tables


def _models(found: Correlated, study: StudyAgreement) -> Table:
    benchmark = found.benchmark
    rivals = study.rivals
    columns = ["model", "context", "benchmark %", *(f"{rival.suite} %" for rival in rivals), "downstream"]
    ranked = sorted(study.models, key=lambda model: -model.benchmark)
    rows = [
        [
            model.name,
            model.context,
            percent(model.benchmark),
            *(percent(rival.models.get(model.name)) for rival in rivals),
            _figure(model.downstream, 3),
        ]
        for model in ranked
    ]
    rows += [
        [name, "apart", "–", *["–"] * len(rivals), _figure(score, 3)] for name, score in sorted(study.apart.items())
    ]
    title = f"{benchmark.suite} {benchmark.split} → {study.kind} on {study.suite} with {study.policy}"
    return Table(title, columns, rows, _notes(study), first_numeric=2)


def _notes(study: StudyAgreement) -> list[str]:
    notes = [study.judge.told("labelled answers")]
    if study.endpoint:
        notes.append(f"downstream: {study.endpoint}")
    pairs = _counted("pairs", study.pairs, study.pairs_left_out)
    notes.append(f"{pairs}; {_counted('items', study.items, study.items_left_out)}")
    if study.unmatched:
        notes.append(f"without a run on the benchmark, left out: {', '.join(study.unmatched)}")
    return notes


def _counted(what: str, count: int, left_out: int) -> str:
    return f"{count:,} {what} that all models have" + (f", {left_out:,} left out" if left_out else "")


def _coefficients(study: StudyAgreement) -> Table:
    columns = [
        "coefficient",
        "value [95 % over models]",
        "over items [95 %]",
        "p one-sided",
        "p two-sided",
        "chance",
        "without one model",
    ]
    rows = [_coefficient_row(_NAMES[name], scored) for name, scored in study.coefficients.items()]
    test = study.coefficients["spearman"].permutation
    orders = f"all {test.orders:,} orders" if test.exact else f"{test.orders:,} drawn orders"
    tied = study.held_in_place
    held = f"; the {tied} that are not shown the user are tied by construction and held in place" if tied else ""
    notes = [f"p from {orders} of {study.n - tied} models{held}"]
    if not study.shown_the_user:
        notes += [*_by_lineage(study.coefficients["spearman"]), *_verdict(study)]
    if leaning := study.coefficients["spearman"].jackknife.leaning:
        without = study.coefficients["spearman"].jackknife.values[leaning]
        notes.append(f"ρ leans most on {leaning}: without it {_figure(without)}")
    return Table(f"Agreement over {study.n} models", columns, rows, notes)


def _readers(study: StudyAgreement, shown: Readers) -> Table:
    """Return the table over those whose places the benchmark does not fix by construction."""
    columns = ["coefficient", "value [95 % over models]", "over items [95 %]", "p two-sided", "without one model"]
    rows = [
        [row[0], row[1], row[2], row[4], row[6]]
        for row in (_coefficient_row(_NAMES[name], scored) for name, scored in shown.coefficients.items())
    ]
    notes = [*_by_lineage(shown.coefficients["spearman"]), *_verdict(study)]
    return Table(f"Agreement over the {shown.n} models that are shown the user", columns, rows, notes)


def _by_lineage(scored: Agreement) -> list[str]:
    """Return what holds between and within lineages, where models come in some."""
    found = scored.lineages
    if found is None:
        return []
    between, within = _figure(found.between), _figure(found.within)
    return [
        f"ρ over {found.lineages} lineages drawn whole: {_interval(found.value)}, p {p_value(found.p)}; between their "
        f"means {between} (p {p_value(found.between_p)}), within them {within} (p {p_value(found.within_p)})"
    ]


def _verdict(study: StudyAgreement) -> list[str]:
    return [f"verdict: {study.verdict.sentence}"] if study.verdict else []


def _coefficient_row(label: str, scored: Agreement) -> list[str]:
    test, left = scored.permutation, scored.jackknife
    return [
        label,
        _interval(scored.over_models),
        _interval(scored.over_items),
        p_value(test.one_sided),
        p_value(test.two_sided),
        _figure(test.chance),
        "–" if left.low is None else f"{left.low:.2f} … {left.high:.2f}",
    ]


def _rivals(study: StudyAgreement) -> Table:
    columns = [
        "rival",
        "context",
        "ρ",
        "rival's ρ",
        "difference [95 %]",
        "p swap",
        "p Williams",
        "ρ given rival",
        "p given",
    ]
    rows = [_rival_row(rival) for rival in study.rivals]
    notes = [f"{rival.suite}: {rival.verdict.sentence}" for rival in study.rivals if rival.verdict]
    notes += [
        f"{rival.suite}: difference of ρ with lineages and couples drawn anew {_interval(rival.lineages.difference)}, "
        f"p {p_value(rival.lineages.p)}"
        for rival in study.rivals
        if rival.lineages
    ]
    notes += [
        f"{rival.suite}: over all {study.n} models ρ {_figure(rho.benchmark)}, rival's {_figure(rho.rival)}"
        for rival in study.rivals
        if (rho := rival.everybody["spearman"]) and rival.n < len(rival.models)
    ]
    notes += [f"{rival.suite}: no run of {', '.join(rival.missing)}" for rival in study.rivals if rival.missing]
    tied = study.held_in_place
    among = f"the {study.n - tied} models that are shown the user" if tied else "same models"
    return Table(f"Against rival benchmarks ({among}, same outcome)", columns, rows, notes, first_numeric=2)


def _rival_row(rival: RivalAgreement) -> list[str]:
    versus, partial = rival.coefficients["spearman"], rival.partial["spearman"]
    return [
        f"{rival.suite} {rival.split}",
        ", ".join(rival.contexts),
        _figure(versus.benchmark),
        _figure(versus.rival),
        _interval(versus.difference),
        p_value(versus.swap_p),
        p_value(versus.williams.p if versus.williams else None),
        _figure(partial.value),
        p_value(partial.p),
    ]


def _power(found: Correlated) -> Table:
    rows = [[f"{float(rho):g}", Number(str(needed), needed)] for rho, needed in found.models_needed.items()]
    return Table("Models needed for 80 % power (two-sided p < .05)", ["true ρ", "models"], rows)


def _figure(value: float | None, digits: int = 2) -> Number:
    return Number("–" if value is None else f"{value:.{digits}f}", value)


def _interval(estimate: Estimate | None) -> Number:
    if estimate is None or estimate.value is None:
        return Number("–", None, ranged=True)
    value, low, high = estimate.value, estimate.low, estimate.high
    text = f"{value:.2f}" if low is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"
    return Number(text, value, low, high, ranged=True)
