"""`dagflow config APP`: every effective setting with its origin."""

from __future__ import annotations

from typing import Any

from dagflow.cli.options import Given, app_command
from dagflow.cli.prepare import built
from dagflow.config import effective, render_json, render_text
from dagflow.model.expand import ExpandedDag
from dagflow.model.ports import input_ports


@app_command(
    "config", help="Shows every effective setting of an application, its operators and its run, and where each comes from."
)
def command(given: Given) -> None:
    """Prints the settings; secrets are hidden."""
    made = built(given)
    rows = effective(
        made.application.settings_class,
        made.layers,
        operators={name: node.operator for name, node in made.expanded.operators.items()},
        modules={name: node.module for name, node in made.expanded.modules.items()},
        applied=made.applied,
        ports=_port_attributes(made.expanded),
        applied_ports=made.applied_ports,
        attributes=made.attributes,
    )
    print(render_json(rows) if given.json else render_text(rows))


def _port_attributes(dag: ExpandedDag) -> dict[str, dict[str, dict[str, Any]]]:
    """The attributes of all input ports as code has set them: operator → port → attribute → value."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, node in dag.operators.items():
        found[name] = {
            port: {
                "partition_parallel": node.port_attributes.get(port, {}).get("partition_parallel", declared.partition_parallel)
            }
            for port, declared in input_ports(type(node.operator)).items()
        }
    return found
