"""From an application and its layers of settings to a plan; starts nothing."""

from __future__ import annotations

import importlib.util
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
from dagflow.errors import DagError, DagflowError
from dagflow.errors.application import ApplicationBroken, OperatorsShadowed
from dagflow.model.dag import DAG
from dagflow.model.ports import input_ports
from dagflow.model.source import shown
from dagflow.plan.plan import Plan, make_plan
from dagflow.runtime.application import Application, application_of, load_application
from dagflow.runtime.compile import driver_program, pickled, stage_program

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
    layers_of = {"code": code, "environment": environment, "conf_files": conf_files, "definitions": definitions}
    built, problems = _filled(application, {**layers_of, "options": options, "run": run})
    problems.raise_all()
    return built


def examine(application: Any, **given: Any) -> tuple[Built | None, Plan | None, tuple[DagflowError, ...]]:
    """All that is wrong with an application and its settings, found without starting anything. Takes what `build` takes.

    Settings must be right before the DAG can be filled; then what is wrong with operators' properties and with the DAG is
    found together.
    """
    try:
        built, problems = _filled(application, given)
    except DagflowError as error:
        return None, None, (error,)
    found: list[DagflowError] = list(problems.errors)
    plan = None
    try:
        plan = built.plan()
        for program in [driver_program(plan), *(stage_program(plan, stage.name) for stage in plan.stages)]:
            pickled(program, plan)
    except DagError as error:
        found.append(error)
    return built, plan, tuple(found)


def _filled(application: Any, given: Mapping[str, Any]) -> tuple[Built, Problems]:
    """An application with its DAG, and what is wrong with the properties of its operators."""
    try:
        app = load_application(application) if isinstance(application, str) else application_of(application)
    except ApplicationBroken:
        shadowed()  # the likely cause: it lacks the names that the application imports
        raise
    shadowed()
    layers = read_layers(app.settings_class, **given)
    problems = Problems()
    settings: Any = None
    run_settings, spark = RunSettings(), dict[str, str]()
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
    applied: dict[str, Any] = {}
    applied_ports: dict[str, dict[str, dict[str, Setting]]] = {}
    with problems:
        applied = apply_operators(operators, layers)
    ports = {name: list(input_ports(type(operator))) for name, operator in operators.items()}
    with problems:
        applied_ports = apply_ports(ports, PORT_ATTRIBUTES, layers)
    for name, by_port in applied_ports.items():
        for port, attributes in by_port.items():
            dag.set_port_attributes(getattr(operators[name], port), **{k: s.value for k, s in attributes.items()})
    return Built(app, layers, settings, run_settings, spark, dag, applied, applied_ports), problems


def shadowed() -> None:
    """Raises OperatorsShadowed when `operators` is not the library that belongs to this dagflow."""
    loaded: Any = sys.modules.get("operators") or importlib.util.find_spec("operators")
    if loaded is None:
        return
    spec = getattr(loaded, "__spec__", None) or loaded
    place = os.path.dirname(os.path.abspath(spec.origin)) if spec.origin else next(iter(spec.submodule_search_locations), "")
    if not os.path.exists(os.path.join(place, "contexts", "entity.py")):
        raise OperatorsShadowed(path=shown(spec.origin if spec.submodule_search_locations is None else place))
