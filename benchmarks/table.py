"""Tables of results, as text and as Markdown: pure functions of results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.rounds import Figure, Result

MB = 1_000_000


def goals_table(results: Iterable[Result]) -> str:
    """One row for each goal: what was wanted and what was measured."""
    rows = []
    for result in results:
        for goal in result.case.goals:
            outcome = result.outcome(goal)
            measured, verdict = ("n/a", "") if outcome is None else (outcome[0], "yes" if outcome[1] else "**no**")
            rows.append((result.case.title, goal.words, measured, verdict, result.by_processor(goal)))
    return markdown(("work", "goal", "measured", "met", "by processor s"), rows)


def figures_table(result: Result) -> str:
    """One row for each contestant of a case; `ratio`: how many times as fast as the first one."""
    unit, figures = result.case.unit, list(result.figures.values())
    if unit == "ms":  # many short turns: how far they lie apart says more than all of them
        rows = [_spread(figure, figures[0]) for figure in figures]
        return markdown(("", "median ms", "least", "most", "ratio"), rows)
    if unit != "s":
        return markdown(("", "measured"), [(f.name, f"{f.median:,.0f} {unit}") for f in figures])
    rows = [_row(figure, figures[0]) for figure in figures]
    return markdown(("", "median s", "rounds", "processor s", "MB/s", "ratio"), rows)


def _row(figure: Figure, first: Figure) -> Sequence[str]:
    rounds = " ".join(f"{value:.3g}" for value in figure.values)
    speed = f"{figure.size / figure.median / MB:.0f}" if figure.size else ""
    return (figure.name, f"{figure.median:.3g}", rounds, f"{figure.processor or 0:.2f}", speed, _ratio(first, figure))


def _spread(figure: Figure, first: Figure) -> Sequence[str]:
    shown = (f"{v:.3g}" if v < 999.5 else f"{v:,.0f}" for v in (figure.median, min(figure.values), max(figure.values)))
    return (figure.name, *shown, _ratio(first, figure))


def _ratio(first: Figure, figure: Figure) -> str:
    return f"{first.each / figure.each:.2f}"


def page(results: Sequence[Result], command: str, machine: str, when: str) -> str:
    """The whole report in Markdown."""
    parts = [f"Made by `{command}` on {when}: {machine}.", goals_table(results)]
    for result in results:
        before, highest = result.load
        parts.append(f"### {result.case.title}")
        parts.append(figures_table(result))
        parts.append("\n".join([f"Load average before: {before:.1f}, at most: {highest:.1f}.", *result.case.notes]))
    return "\n\n".join(parts) + "\n"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]
    return "\n".join(lines)
