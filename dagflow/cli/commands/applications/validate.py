"""`dagflow validate APP`: finds all that is wrong, without running anything."""

from __future__ import annotations

import json

from dagflow.cli.app_arguments import AppArguments, app_command
from dagflow.cli.prepare import planned
from dagflow.render.views import Validation


@app_command(
    "validate",
    help="Report everything that is wrong with an application, its settings and its folders. Nothing runs.",
)
def command(arguments: AppArguments) -> None:
    """Print the number of operators and streams, or raise all that is wrong."""
    built, plan = planned(arguments, places=True)
    summary = Validation.of(built, plan)
    print(json.dumps(summary.as_json(), indent=2, ensure_ascii=False) if arguments.json else summary.text())
