"""From an application and its layers of settings to a plan; starts nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dagflow.config import (
    Layers,
    Problems,
    RunSettings,
    Setting,
    apply_operators,
    apply_ports,
    build_run_settings,
    build_settings,
    read_layers,
    spark_conf,
)
from dagflow.errors import DagflowError
from dagflow.errors.application import ApplicationBroken, OperatorsShadowed
from dagflow.model.dag import DAG
from dagflow.model.ports import input_ports
from dagflow.plan.plan import Plan, make_plan
from dagflow.runtime.application import Application, application_of, load_application

PORT_ATTRIBUTES = {"partition_parallel": bool | None}


@attrs.frozen
class Built:
    """An application with its settings, and what has been made of them."""

    application: Application
    layers: Layers
    settings: Any
    run: RunSettings
    spark: dict[str, str]
    dag: DAG
    applied: dict[str, Any]
    applied_ports: dict[str, dict[str, dict[str, Setting]]]

    def plan(self) -> Plan:
        """Checks and plans the DAG. Raises DagError."""
        return make_plan(self.dag)


def build(
    application: Any,
    *,
    code: object = None,
    environment: Mapping[str, str] | None = None,
    conf_files: Sequence[str] = (),
    definitions: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    run: Mapping[str, Any] | None = None,
) -> Built:
    """Loads an application (a spec, a function or an object with populate_dag), fills its DAG and applies all settings.

    Raises ConfigError for what is wrong with settings or application; the DAG is not checked yet.
    """
    app = load_application(application) if isinstance(application, str) else application_of(application)
    shadowed()
    layers = read_layers(
        app.settings_class, code=code, environment=environment, conf_files=conf_files, definitions=definitions, options=options, run=run
    )
    problems = Problems()
    with problems:
        settings = build_settings(app.settings_class, layers)
    with problems:
        run_settings = build_run_settings(layers)
    with problems:
        spark = {key: setting.value for key, setting in spark_conf(layers).items()}
    problems.raise_all()
    dag = DAG(run_settings.name or app.name)
    try:
        app.populate_dag(dag, settings)
    except DagflowError:
        raise
    except Exception as error:
        raise ApplicationBroken.of(app.where or app.name, error, "populate_dag()") from error
    operators = {name: node.operator for name, node in dag.operators.items()}
    applied = apply_operators(operators, layers)
    ports = {name: list(input_ports(type(operator))) for name, operator in operators.items()}
    applied_ports = apply_ports(ports, PORT_ATTRIBUTES, layers)
    for name, by_port in applied_ports.items():
        for port, attributes in by_port.items():
            dag.set_port_attributes(getattr(operators[name], port), **{k: s.value for k, s in attributes.items()})
    return Built(app, layers, settings, run_settings, spark, dag, applied, applied_ports)


def shadowed() -> None:
    """Raises OperatorsShadowed when `operators` is not the library that belongs to this dagflow."""
    loaded = sys.modules.get("operators")
    if loaded is None:
        import operators as loaded
    place = os.path.dirname(os.path.abspath(getattr(loaded, "__file__", None) or next(iter(loaded.__path__))))
    if not os.path.exists(os.path.join(place, "contexts", "entity.py")):
        raise OperatorsShadowed(path=place)
