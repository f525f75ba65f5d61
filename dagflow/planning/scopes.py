"""Scopes: the input that operators' results cover. Those that cover one window depend on how the input is cut."""

from __future__ import annotations

from dagflow.model.graph.changes import is_function_of_rows
from dagflow.model.graph.checks import CheckedDag
from dagflow.model.graph.dag import OperatorNode, PortName
from dagflow.model.graph.stream_columns import ColumnSolver
from dagflow.model.operator.base import Operator
from dagflow.model.operator.map_state import KeyedState
from dagflow.model.operator.ports import output_ports
from dagflow.model.operator.protocols import EmitsItems, StateSize
from dagflow.model.operator.state import WindowState, state_fields
from dagflow.planning.errors import ScopeNotWritten

ALL, LAUNCH, WINDOW = "all input", "the input of a launch", "a window"


def covered(dag: CheckedDag, node: OperatorNode) -> str | None:
    """Return the input that an operator's results cover: ALL, LAUNCH or WINDOW; None for functions of single rows.

    LAUNCH stands for operators that mean all input and keep nothing over windows. A bounded launch takes its input as one window
    for them.
    """
    operator = node.operator
    if not _emits(dag, node) or is_function_of_rows(operator):
        return None
    if operator.scope == "window":
        return WINDOW
    if isinstance(operator, EmitsItems):
        return None
    return ALL if keeps_over_windows(operator) else LAUNCH


def content_covers(dag: CheckedDag, node: OperatorNode) -> str | None:
    """Return the input that the content of a sink covers which replaces its rows: ALL, LAUNCH or WINDOW; None for other sinks.

    WINDOW, where that of any operator above does: its rows replace those of the window before. ALL, where that of another one
    does: the rows that stand are kept, as those of a changing stream are. Else LAUNCH: the rows of a launch take the place of
    those of the launch before.
    """
    behind = node.operator.behind_current()
    if behind is None or not behind[0].waits_for_emission:
        return None
    if any(source in dag.changing for source, _ in dag.upstream(node.name)):
        return ALL
    if not node.operator.replaces_rows():
        return None
    above = [dag.nodes[name] for name in dag.above(node.name)]
    scopes = {WINDOW if _emits_as_windows_end(dag, each) else covered(dag, each) for each in above}
    return next((scope for scope in (WINDOW, ALL) if scope in scopes), LAUNCH)


def is_behind_all(dag: CheckedDag, node: OperatorNode) -> bool:
    """Return whether an operator that covers all input is above a sink: another mode gives its content another meaning then."""
    return any(covered(dag, dag.nodes[name]) == ALL for name in dag.above(node.name))


def keeps_over_windows(operator: Operator) -> bool:
    """Return whether an operator keeps state over windows."""
    fields = state_fields(type(operator))
    return any(operator.keeps_state(name) for name, kept in fields.items() if not isinstance(kept, WindowState))


def kept_by(dag: CheckedDag, node: OperatorNode) -> StateSize | None:
    """Return what an operator keeps over windows, and what bounds it; None where it keeps nothing."""
    operator = node.operator
    if not keeps_over_windows(operator):
        return None
    size = operator.state_size([sink.port for source, sink in dag.upstream(node.name) if source in dag.changing])
    declared = state_fields(type(operator)).items()
    names = [name for name, kept in declared if not isinstance(kept, WindowState) and operator.keeps_state(name)]
    keyed = any(isinstance(kept, KeyedState) and operator.keeps_state(name) for name, kept in declared)
    grows = keyed and not isinstance(operator, EmitsItems)  # which keep what they have read
    return StateSize(f"its state: {', '.join(names)}", None if grows else "") if size is None else size


def unbounded(dag: CheckedDag) -> dict[str, str]:
    """Return the operators of which nothing bounds what they keep, each with what it keeps."""
    sizes = {name: kept_by(dag, node) for name, node in dag.nodes.items()}
    return {name: size.kept for name, size in sizes.items() if size is not None and size.bounded_by is None}


def depending_on_windows(dag: CheckedDag) -> tuple[dict[str, str], dict[PortName, str]]:
    """Return the operators and output ports whose rows depend on how the input is cut into windows, each with the reason.

    They are outside the law (docs/explanation/changes.md). What follows from their rows depends on windows, too.
    """
    operators, ports, columns = dict[str, str](), dict[PortName, str](), dag.columns()
    for name, node in dag.nodes.items():
        above = [ports[source] for source, _ in dag.upstream(name) if source in ports]
        if reason := _window_reason(dag, node, columns) or next(iter(above), None):
            operators[name] = reason
        for port_name, port in output_ports(type(node.operator)).items():
            kind = "error" if port_name == "errors" else "late" if port.only_adds else None
            if (why := reason or (kind and f"{kind} records of {name}")) and dag.stream_from(PortName(name, port_name)):
                ports[PortName(name, port_name)] = why
    return operators, ports


def _window_reason(dag: CheckedDag, node: OperatorNode, columns: ColumnSolver) -> str | None:
    operator, name, upstream = node.operator, node.name, dag.upstream(node.name)
    if covered(dag, node) == WINDOW:
        return f"{name} covers a window"
    if content_covers(dag, node) == LAUNCH:
        return f"{name} has the rows of the newest launch that has any for it, or window of a continuous one"
    if operator.follows_event_time:
        return f"which records are late for {name}"
    behind, follows = operator.behind_current(), any(source in dag.changing for source, _ in upstream)
    if follows:
        return "which changes cancel before they are written" if behind and not behind[0].waits_for_emission else None
    if behind is None and (keys := operator.row_keys()) and not all(columns.into(sink).identifies(keys) for _, sink in upstream):
        return f"which row with the same {', '.join(keys)} is the last"
    if _emits_as_windows_end(dag, node):
        return f'what {name} emits as windows end (scope = "all" in its class says that it does not)'
    return None


def _emits_as_windows_end(dag: CheckedDag, node: OperatorNode) -> bool:
    """Return whether an operator may emit what it keeps whenever a window ends, and does not say otherwise."""
    operator = node.operator
    if isinstance(operator, EmitsItems) or operator.scope is not None or type(operator).end_window is Operator.end_window:
        return False
    is_changing = any(port.operator == node.name for port in dag.changing)
    return keeps_over_windows(operator) and _emits(dag, node) and not is_changing


def covering_launches(dag: CheckedDag) -> tuple[OperatorNode, ...]:
    """Return the operators whose results cover the input of a launch."""
    return tuple(node for node in dag.nodes.values() if covered(dag, node) == LAUNCH)


def takes_launch_whole(dag: CheckedDag) -> bool:
    """Return whether a bounded launch takes its input as one window, so that results do not depend on how it is cut.

    That is so where results cover the input of a launch, in operators or sinks, and where records of later windows might come too
    late.
    """
    return any(
        LAUNCH in (covered(dag, node), content_covers(dag, node))
        or (node.operator.scope == "all" and node.operator.follows_event_time)
        for node in dag.nodes.values()
    )


def refuse_parts(dag: CheckedDag, why: str) -> None:
    """Raise ScopeNotWritten if operators mean all input, and would get a part of it."""
    if nodes := covering_launches(dag):
        raise ScopeNotWritten(tuple((node.name, type(node.operator).__qualname__, node.where) for node in nodes), why)


def _emits(dag: CheckedDag, node: OperatorNode) -> bool:
    ports = (port for port in output_ports(type(node.operator)) if port != "errors")
    return any(dag.stream_from(PortName(node.name, port)) is not None for port in ports)
