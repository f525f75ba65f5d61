"""`dagflow validate APP`: finds all that is wrong, without running anything."""

from __future__ import annotations

import json

from dagflow.cli.options import Given, app_command
from dagflow.cli.prepare import planned
from dagflow.render.views import Validation


@app_command(
    "validate",
    help="Finds all that is wrong with an application, its settings and its folders, without running it or starting Spark.",
)
def command(given: Given) -> None:
    """Says what there is, or raises all that is wrong."""
    built, plan = planned(given, places=True)
    found = Validation.of(built, plan)
    print(json.dumps(found.as_json(), indent=2, ensure_ascii=False) if given.json else found.text())
