"""`dagflow config APP`: every effective setting with its origin, or the schema of its configuration files."""

from __future__ import annotations

import json
import sys
from typing import Any

import attrs
import click

from dagflow.cli.app_arguments import AppArguments, app_command
from dagflow.cli.prepare import built, spark_address
from dagflow.cli.report_error import style_of
from dagflow.config import SettingRow, effective, render_json, render_text
from dagflow.config.effective import RUN
from dagflow.model.graph.dag import OPERATOR_ATTRIBUTES
from dagflow.model.graph.expand import ExpandedDag
from dagflow.model.operator.ports import input_ports
from dagflow.spark.connection.address import Address


@app_command(
    "config",
    help="Show every setting of an application, its operators and its run, with its value and where that comes from.",
    params=[click.Option(["--schema"], is_flag=True, help="Print the JSON schema of configuration files, for editors.")],
)
def command(arguments: AppArguments, schema: bool) -> None:
    """Print the settings; secrets are hidden."""
    application = built(arguments)
    settings = application.application.settings_class
    operators = {name: node.operator for name, node in application.expanded.operators.items()}
    modules = {name: node.module for name, node in application.expanded.modules.items()}
    if schema:
        from dagflow.catalogue.conf_schema import conf_schema  # the catalogue takes 30 ms to load

        of_files = conf_schema(application.application.name, settings, operators, modules, OPERATOR_ATTRIBUTES)
        print(json.dumps(of_files, indent=2, ensure_ascii=False))
        return
    rows = effective(
        settings,
        application.layers,
        operators=operators,
        modules=modules,
        applied=application.applied,
        ports=_port_attributes(application.expanded),
        applied_ports=application.applied_ports,
        attributes=application.attributes,
    )
    rows = _with_address(rows, spark_address(application))
    print(render_json(rows) if arguments.json else render_text(rows, style_of(sys.stdout).width or 80))


def _with_address(rows: list[SettingRow], address: Address | None) -> list[SettingRow]:
    """The rows with the address at which Spark runs when something outside the run names it."""
    if address is None or not address.is_given:
        return rows
    place = f"run.{address.kind}"
    return [
        attrs.evolve(row, value=address.value, origin=address.origin)
        if row.group == RUN and row.key in (address.kind, place)
        else row
        for row in rows
    ]


def _port_attributes(dag: ExpandedDag) -> dict[str, dict[str, dict[str, Any]]]:
    """The attributes of all input ports as code has set them: operator → port → attribute → value."""
    by_operator: dict[str, dict[str, dict[str, Any]]] = {}
    for name, node in dag.operators.items():
        by_operator[name] = {
            port: {
                "partition_parallel": node.port_attributes.get(port, {}).get("partition_parallel", declared.partition_parallel)
            }
            for port, declared in input_ports(type(node.operator)).items()
        }
    return by_operator
