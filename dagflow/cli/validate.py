"""`dagflow validate APP`: finds all that is wrong, without running anything."""

from __future__ import annotations

import json

from dagflow.cli.options import Given, app_command
from dagflow.cli.prepare import planned
from dagflow.render.words import counted


@app_command(
    "validate",
    help="Finds all that is wrong with an application, its settings and its folders, without running it or starting Spark.",
)
def command(given: Given) -> None:
    """Says what there is, or raises all that is wrong."""
    built, plan = planned(given, places=True)
    figures = {"operators": len(plan.dag.nodes), "streams": len(plan.dag.streams), "stages": len(plan.stages)}
    if given.json:
        print(json.dumps({"ok": True, "application": built.dag.name, **figures}, indent=2, ensure_ascii=False))
    else:
        print(f"{built.dag.name}: ok ({', '.join(counted(n, what[:-1]) for what, n in figures.items())})")
