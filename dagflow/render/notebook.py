"""Objects in notebooks: the terminal's text, and a picture or a table beside it. Errors fold their traceback.

Jupyter and IPython ask objects for a MIME bundle, and exceptions for the lines of their traceback. Objects of lower layers get
these functions by `dagflow.exports.shown_in_notebooks`. Nothing here needs IPython: where it is asked for, it is running.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any

from dagflow.errors import DagflowError
from dagflow.launching.run import Run
from dagflow.ledger.history import history
from dagflow.ledger.reader import LedgerReader
from dagflow.model.graph.dag import DAG
from dagflow.page import graph_svg
from dagflow.planning.view import PlanView, plan_view
from dagflow.render.datasets.ledger import MOST, LogHead, log_end, log_head, log_lines
from dagflow.render.errors import error_text
from dagflow.render.graph import graph_text
from dagflow.render.plan import plan_text
from dagflow.render.report import failure_text, report_text
from dagflow.render.style import Style
from dagflow.render.words import count, counted, seconds
from dagflow.runtime.run_report import RunReport

Bundle = dict[str, str]
"""Forms of an object by MIME type. A front end takes the richest that it can show."""

_FOLDED = "_has_folded_traceback"
TEXT, HTML, SVG = "text/plain", "text/html", "image/svg+xml"


def dag_bundle(dag: DAG) -> Bundle:
    """Return a DAG as it was written: the picture of `dagflow graph --step logical`."""
    return graph_bundle(plan_view(dag, "logical", {}))


def graph_bundle(view: PlanView) -> Bundle:
    """Return a step of a plan as a picture."""
    return {TEXT: graph_text(view), SVG: graph_svg(view)}


def plan_bundle(view: PlanView) -> Bundle:
    """Return a step of a plan as a picture, with the text of `dagflow plan` below it."""
    text = plan_text(view)
    return {TEXT: text, HTML: f"{graph_svg(view)}{folded('the plan as text', text)}"}


def report_bundle(report: RunReport) -> Bundle:
    """Return the report of a run: a table of its operators, with the whole closing report below it."""
    head = ["operator", "records in", "records out", "rejected", "seconds"]
    rows = [
        [name, count(each.records_in), count(each.records_out), count(each.errors), f"{each.seconds:.2f}"]
        for name, each in report.operators.items()
    ]
    what = f"{report.application}: {report.status}, {counted(report.windows, 'window')} in {seconds(report.seconds)}"
    text = "\n\n".join(filter(None, [report_text(report), failure_text(report)]))
    return {TEXT: text, HTML: f"<p>{html.escape(what)}</p>{html_table(head, rows, 'lrrrr')}{folded('the whole report', text)}"}


def run_bundle(run: Run) -> Bundle:
    """Return a launch: its report so far."""
    return report_bundle(run.report)


def ledger_bundle(ledger: LedgerReader) -> Bundle:
    """Return the newest entries of a ledger, as `dagflow log` lists them."""
    style, head, steps = Style(), LogHead.of(ledger, ledger.place), history(ledger)
    lines = [log_head(head, style), "", *log_lines(list(islice(steps, MOST)), head, style)]
    if (older := next(steps, None)) is not None:
        lines.append(log_end(older, style))
    text = "\n".join(lines)
    return {TEXT: text, HTML: f"<pre>{html.escape(text)}</pre>"}


def traceback_lines(error: DagflowError) -> list[str]:
    """Return the message of an error for IPython; its traceback follows the cell, folded. `%tb Verbose` shows all of it at once.

    IPython calls this in place of its own rendering (`_render_traceback_`).
    """
    shell = sys.modules["IPython"].get_ipython()
    trace: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
    if shell.InteractiveTB.mode == "Verbose":
        return trace
    has_pages = "ipykernel" in sys.modules and isinstance(shell, sys.modules["ipykernel"].zmqshell.ZMQInteractiveShell)
    if has_pages:
        _show_after_the_cell(shell, error, folded("traceback", re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(trace))))
    text = error_text(error, Style(colour=str(shell.colors).lower() != "nocolor"))
    return [text] if has_pages else [text, "  %tb Verbose shows the traceback"]


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> str:
    """Return a table without colours of its own, so that it suits light and dark pages. `align`: `l` or `r` for each column."""
    sides = ["right" if how == "r" else "left" for how in align.lower()]

    def line(tag: str, cells: Sequence[str]) -> str:
        each = (
            f'<{tag} style="text-align:{side};white-space:pre">{html.escape(cell)}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{''.join(each)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>"


def folded(title: str, text: str) -> str:
    """Return text that a click on its title shows."""
    return f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"


def _show_after_the_cell(shell: Any, error: DagflowError, page: str) -> None:
    """Show a page below what the cell has shown; once, though IPython asks for the lines of an error twice."""

    def show(*ended: Any) -> None:
        shell.events.unregister("post_run_cell", show)
        del vars(error)[_FOLDED]
        shell.display_pub.publish({HTML: page, TEXT: ""})

    if _FOLDED not in vars(error):
        vars(error)[_FOLDED] = True
        shell.events.register("post_run_cell", show)
