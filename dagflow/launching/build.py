"""From an application and its layers of settings to a plan; starts nothing."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from dagflow.config import (
    Layers,
    Problems,
    RunSettings,
    Setting,
    apply_module,
    apply_operators,
    apply_ports,
    build_run_settings,
    build_settings,
    operator_attributes,
    read_layers,
    spark_conf,
)
from dagflow.config.errors import BadConfFile, BadDefinition, BadValue, ConfFileMissing, MissingSetting
from dagflow.errors import DagError, DagflowError
from dagflow.launching.application import Application, application_of, load_application
from dagflow.launching.errors import ApplicationBroken
from dagflow.launching.shadowing import hidden_module, shadow_of
from dagflow.model.graph.dag import DAG, OPERATOR_ATTRIBUTES, OperatorNode, PortName
from dagflow.model.graph.expand import ExpandedDag, expand
from dagflow.model.graph.module import ModuleNode
from dagflow.model.graph.partitioning import key_given, partitioner_of
from dagflow.model.operator.ports import input_ports
from dagflow.planning.emission import Emission, refuse_further_windows, refuse_whole_results
from dagflow.planning.errors import ScopeNotWritten
from dagflow.planning.plan import Plan
from dagflow.planning.scopes import refuse_parts
from dagflow.planning.steps import make_plan
from dagflow.runtime.task.compile import driver_program, pickled, stage_program
from dagflow.scaling import EXPECTED, partitioner_named

PORT_ATTRIBUTES = {"partition_parallel": bool | None, "partition_by": str | None}


@attrs.frozen
class LoadedApplication:
    """An application with its settings, and what has been made of them: the DAG as written, and with its modules inlined."""

    application: Application
    layers: Layers
    settings: Any
    run: RunSettings
    spark: dict[str, str]
    dag: DAG
    expanded: ExpandedDag
    applied: dict[str, Any]
    applied_ports: dict[str, dict[str, dict[str, Setting]]]
    attributes: dict[str, dict[str, Setting]] = attrs.field(factory=dict)

    def plan(self, emission: Emission | None = None) -> Plan:
        """Check and plan the DAG. `emission`: when changing streams reach sinks; None: as the settings say. Raises DagError."""
        plan = make_plan(self.expanded, emission or Emission(self.run.continuous, self.run.every, self.run.final))
        if self.run.continuous:
            refuse_parts(plan.written, ScopeNotWritten.CONTINUOUS)
        if self.run.final:
            refuse_further_windows(plan.written)
        refuse_whole_results(plan.written, plan.emission)
        return plan


def build(
    application: Any,
    *,
    code: object = None,
    environment: Mapping[str, str] | None = None,
    conf_files: Sequence[str] = (),
    definitions: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    run: Mapping[str, Any] | None = None,
) -> LoadedApplication:
    """Load an application (a spec, a function or an object with populate_dag), fill its DAG and apply all settings.

    Raises ConfigError for what is wrong with settings or application; the DAG is not checked yet.
    """
    layers_of = {"code": code, "environment": environment, "conf_files": conf_files, "definitions": definitions}
    problems, built = Problems(), None
    try:
        with problems:
            built = _filled(application, {**layers_of, "options": options, "run": run}, problems)
    except DagError:
        problems.raise_all()
        raise
    problems.raise_all()
    assert built is not None
    return built


def examine(application: Any, **given: Any) -> tuple[LoadedApplication | None, Plan | None, tuple[DagflowError, ...]]:
    """All that is wrong with an application and its settings, found without starting anything. Takes what `build` takes.

    The application's settings must be right before the DAG can be filled; then what is wrong with operators' properties and
    with the DAG is found together.
    """
    problems = Problems()
    try:
        built = _filled(application, given, problems)
    except DagflowError as error:
        return None, None, (*problems.errors, error)
    if built is None:
        return None, None, tuple(problems.errors)
    errors: list[DagflowError] = list(problems.errors)
    if not built.expanded.is_whole and not built.expanded.problems:  # settings of a module are wrong
        return built, None, tuple(errors)
    plan = None
    try:
        plan = built.plan()
        for program in [driver_program(plan), *(stage_program(plan, stage.name) for stage in plan.stages)]:
            pickled(program, plan)
    except DagError as error:
        errors.append(error)
    return built, plan, tuple(errors)


def _filled(application: Any, given: Mapping[str, Any], problems: Problems) -> LoadedApplication | None:
    """An application with its DAG. Problems go to `problems`; None: with these there can be no DAG.

    Raises DagflowError: what the application raised when it filled the DAG.
    """
    app = None
    with problems:
        app = _loaded(application)
    layers = read_layers(app.settings_class if app is not None else None, problems=problems, **given)
    if app is None:
        return None
    settings: Any = None
    of_settings = Problems()
    with of_settings:
        settings = build_settings(app.settings_class, layers)
    is_unread = any(isinstance(error, BadConfFile | ConfFileMissing) for error in problems.errors)
    misspelt = {error.text for error in problems.errors if isinstance(error, BadDefinition)}
    for error in of_settings.errors:
        if not (isinstance(error, MissingSetting) and (is_unread or error.key in misspelt)):  # it was given, nearly
            problems.add(error)
    run_settings, spark = RunSettings(), dict[str, str]()
    with problems:
        run_settings = build_run_settings(layers)
    with problems:
        spark = {key: setting.value for key, setting in spark_conf(layers).items()}
    if of_settings.errors or is_unread:  # what other settings than the right ones lead to would tell nothing
        return None
    dag = DAG(run_settings.name or app.name)
    try:
        _populate(app, dag, settings)
    except DagflowError as error:
        if not dag.problems:
            raise
        for problem in (*dag.problems, error):  # the failure may follow from these: they come first
            problems.add(problem)
        return None
    applied: dict[str, Any] = {}

    def configured(node: ModuleNode) -> bool:
        before = len(problems.errors)
        with problems:
            applied[node.name] = apply_module(node.name, node.module, layers)
        return len(problems.errors) == before

    expanded = expand(dag, configured)
    operators = {name: node.operator for name, node in expanded.operators.items()}
    modules = {name: node.module for name, node in expanded.modules.items()}
    # a setting for an operator that does not exist yet is not a mistake
    collected = problems if expanded.is_whole else Problems()
    with collected:
        applied |= apply_operators(operators, layers, OPERATOR_ATTRIBUTES, modules)
    partitioned, ports = _partitioned(expanded, layers, collected), _ports(expanded, layers, collected)
    return LoadedApplication(app, layers, settings, run_settings, spark, dag, expanded, applied, ports, partitioned)


def _populate(app: Application, dag: DAG, settings: Any) -> None:
    """Call the application's function. Raises DagflowError."""
    try:
        if not _takes(app.populate_dag, dag, settings):
            raise TypeError("it is called as populate_dag(dag, conf), and does not take these two arguments")
        returned = app.populate_dag(dag, settings)
        if inspect.iscoroutine(returned) or inspect.isgenerator(returned):
            returned.close()
            kind = (
                "a coroutine function: write def instead of async def"
                if inspect.iscoroutine(returned)
                else "a generator: remove yield"
            )
            raise TypeError(f"it is {kind}")
    except DagflowError:
        raise
    except Exception as error:
        raise hidden_module(error) or ApplicationBroken.of(app.where or app.name, error, "populate_dag()") from error


def _takes(function: Callable[..., Any], *arguments: Any) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # a function without a signature
        pass
    return True


def _ports(dag: ExpandedDag, layers: Layers, problems: Problems) -> dict[str, dict[str, dict[str, Setting]]]:
    """Set the attributes of ports that configuration names; those of a module's port are those of the ports behind it."""
    given: dict[str, dict[str, dict[str, Setting]]] = {}
    ports = {name: list(input_ports(type(node.module))) for name, node in dag.modules.items()}
    ports |= {name: list(input_ports(type(node.operator))) for name, node in dag.operators.items()}
    with problems:
        given = apply_ports(ports, PORT_ATTRIBUTES, layers)
    applied: dict[str, dict[str, dict[str, Setting]]] = {}
    for name in filter(given.__contains__, ports):
        for port, attributes in given[name].items():
            for end in dag.behind.get(PortName(name, port), (PortName(name, port),)):
                mine = dag.operators[end.operator].port_attributes.setdefault(end.port, {})
                mine.update({key: _columns(s.value) if key == "partition_by" else s.value for key, s in attributes.items()})
                applied.setdefault(end.operator, {}).setdefault(end.port, {}).update(attributes)
    return applied


def _partitioned(dag: ExpandedDag, layers: Layers, problems: Problems) -> dict[str, dict[str, Setting]]:
    """Set the partitioners and keys that configuration names; with `*`, where there is one. Return what was set, by operator."""
    by_operator: dict[str, dict[str, Setting]] = {}
    for name, given in operator_attributes(dag.operators, OPERATOR_ATTRIBUTES, layers).items():
        node = dag.operators[name]
        for attribute, setting in given.items():
            if setting.path[1] == "*" and not _has(node, attribute):
                continue
            try:
                node.attributes[attribute] = (partitioner_named if attribute == "partitioner" else _columns)(setting.value)
                by_operator.setdefault(name, {})[attribute] = setting
            except ValueError as error:
                bad = {"key": setting.key, "value": repr(setting.value), "origin": setting.origin}
                problems.add(BadValue(**bad, expected=EXPECTED, reason=str(error)))
    return by_operator


def _has(node: OperatorNode, attribute: str) -> bool:
    if attribute == "partitioner":
        return partitioner_of(node) is not None
    return any(key_given(node, port) is not None for port in input_ports(type(node.operator)))


def _columns(given: Any) -> tuple[str, ...] | None:
    """The columns that configuration names as a key: `word`, or `host, hour`; `none` for none."""
    names = [str(name).strip() for name in (given.split(",") if isinstance(given, str) else given or ())]
    return None if names in ([], [""], ["none"]) else tuple(names)


def _loaded(application: Any) -> Application:
    try:
        app = load_application(application) if isinstance(application, str) else application_of(application)
    except ApplicationBroken as error:
        shadowed()  # the likely cause: it lacks the names that the application imports
        raise hidden_module(error) or error from error.__cause__
    shadowed()
    return app


def shadowed() -> None:
    """Raise OperatorsShadowed when `operators` is not the library that belongs to this dagflow."""
    loaded: Any = sys.modules.get("operators") or importlib.util.find_spec("operators")
    if loaded is None:
        return
    spec = getattr(loaded, "__spec__", None) or loaded
    if (shadow := shadow_of(spec)) is not None:
        raise shadow
