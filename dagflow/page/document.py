"""The page: one HTML file with its style, its script and its data, which loads nothing and sends nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from functools import cache
from importlib.resources import files
from typing import Any

from dagflow.page.run.data import COLUMNS, COUNTS, SECONDS, VERSION, drawn
from dagflow.planning.view import PlanView

SCRIPTS = ("base.js", "graph.js", "timeline.js", "sections.js", "main.js")
"""In the order in which they run, as one script."""


def run_html(data: dict[str, Any]) -> str:
    """Return the page of a run, from what `run_data` returns. The data is compressed: no text of it is ever parsed as HTML."""
    packed = base64.b64encode(zlib.compress(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(), 9)).decode()
    element = f'<script type="application/octet-stream" id="data">{packed}</script>\n'
    run = data["run"]
    return _page(title=f"{run['application'] or 'run'}: {run['status']}", data=element, live=False)


def live_html() -> str:
    """Return the page that `dagflow ui` serves. It polls its server for the data."""
    return _page(title="dagflow", data="", live=True)


def graph_html(view: PlanView) -> str:
    """Return the page of a plan that has not run: its DAG, with search, zoom and folding.

    >>> from dagflow import DAG
    >>> from dagflow.planning.view import plan_view
    >>> graph_html(plan_view(DAG("demo"), "logical")).splitlines()[0]
    '<!doctype html>'
    """
    graph = drawn(view)
    run = dict.fromkeys(
        ("runner", "slots", "ui", "launch", "run_folder", "started", "last", "seconds", "error", "slot_use", "resume")
    )
    windows: dict[str, Any] = {"t0": 0, "left_out": 0, "window": [], "launches": [], "launch": []}
    windows |= {name: [] for name in (*COLUMNS, *COUNTS, *SECONDS)}
    data = {
        "v": VERSION,
        "plan": view.step,
        "graph": graph,
        "run": {
            **run,
            "application": graph["application"],
            "status": view.step,
            "outputs": [],
            "sinks": [],
            "decided": 0,
            "planned": 0,
        },
        "windows": windows,
        "tasks": {"t0": 0, "rows": []},
        "operators": {},
        "exchanges": {},
        "live": {},
    } | {name: [] for name in ("launches", "rejects", "findings", "settings", "ledgers", "problems")}
    return run_html({**data, "versions": {}})


@cache
def _asset(name: str) -> str:
    return (files("dagflow.page") / "assets" / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    return "\n".join(_asset(name) for name in SCRIPTS)


def policy(*, live: bool) -> str:
    """Return the page's Content-Security-Policy: its own script and style by their hashes; a live page asks its own server."""
    script, style = _hash(_script()), _hash(_asset("page.css"))
    connect = "connect-src 'self'; " if live else ""
    return f"default-src 'none'; script-src '{script}'; style-src '{style}'; {connect}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _page(*, title: str, data: str, live: bool) -> str:
    parts = {
        "policy": policy(live=live),
        "title": html.escape(title.encode("utf-8", "backslashreplace").decode()),
        "style": _asset("page.css"),
        "live": ' data-live="1"' if live else "",
        "data": data,
        "script": _script(),
    }
    text = _asset("page.html")
    for name, part in parts.items():
        before, _, after = text.rpartition(f"@{name}@") if name == "script" else text.partition(f"@{name}@")
        text = before + part + after
    return text
