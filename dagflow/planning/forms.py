"""The step `forms`: the form in which records travel on each stream, and where they are converted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_origin

import attrs

from dagflow.model.graph.checks import CheckedDag
from dagflow.model.graph.dag import PortName
from dagflow.model.operator.ports import BATCH, IN_COLUMNS, NET, RECORD, STREAM, forms_handled, output_ports
from dagflow.model.types.comparison import type_name
from dagflow.model.types.forms import open_fields, schema_of
from dagflow.planning.errors import NotSupported
from dagflow.planning.plan import DATAFRAME, Exchange, Forms, Plan

BATCHES, PICKLED = "batches", "pickled"


def choose_forms(plan: Plan) -> Plan:
    """Choose batches where both neighbours handle them, else records. Convert only where one side cannot take the other form.

    Exchanges carry batches, or pickled records if their type has no Arrow form.
    """
    dag, exchanges = plan.dag, plan.exchanges
    crossing: dict[PortName, str] = {}
    emitted: dict[PortName, str] = {}
    handled: dict[PortName, str] = {}
    converted: dict[PortName, str] = {}
    for name, node in dag.nodes.items():
        for source, sink in dag.upstream(name):
            offered = node.operator.offered_forms(sink.port)
            if not offered:
                raise NotSupported(
                    f"port {sink} has no handler",
                    node.where,
                    f"write a method of {type(node.operator).__name__} marked @{sink.port}.process",
                )
            arriving = emitted[source]
            if arriving == BATCH and _keeps_columns(dag, exchanges, source, sink):
                offered = frozenset({BATCH})
            if sink in exchanges:
                is_arrow = arriving == BATCH or exchanges[sink].kind == DATAFRAME or schema_of(dag.types[source]) is not None
                crossing[sink] = BATCHES if is_arrow else PICKLED
                if is_arrow and arriving != BATCH:
                    converted[sink] = "records → batches"
                arriving = BATCH if is_arrow else RECORD
            makes_rows = any(node.operator.emitted_type(port) is Any for port in output_ports(type(node.operator)))
            if makes_rows and BATCH in offered and schema_of(dag.types[source]) is not None:
                offered = frozenset({BATCH})  # of records, it would make rows without types
            handled[sink] = preferred_form(arriving, offered)
            if (handled[sink] in IN_COLUMNS) != (arriving == BATCH):
                direction = "batches → records" if arriving == BATCH else "records → batches"
                converted[sink] = "records → batches → records" if sink in converted else direction
                _must_convert(dag, source, sink, arriving)
        forms = {handled[sink] for _, sink in dag.upstream(name)} or {RECORD}
        for port in output_ports(type(node.operator)):
            out = PortName(name, port)
            stream = dag.stream_from(out)
            if stream is None:
                continue
            can = (
                frozenset().union(*(node.operator.emitted_forms(port, form) for form in forms)) if port != "errors" else {RECORD}
            )
            take = any(_takes_batches(dag, exchanges, out, k) for k in stream.sinks)
            has_columns = schema_of(dag.types[out]) is not None  # else records of it cannot be emitted among batches
            emitted[out] = BATCH if BATCH in can and (RECORD not in can or (take and has_columns)) else RECORD
    return attrs.evolve(plan, forms=Forms(emitted, handled, converted, crossing))


def _takes_batches(dag: CheckedDag, exchanges: Mapping[PortName, Exchange], source: PortName, sink: PortName) -> bool:
    """Return whether batches suit a sink better than records. Keys that are functions need records anyway."""
    exchange = exchanges.get(sink)
    if exchange is not None and exchange.key is not None and exchange.key.function is not None:
        return False
    takes = exchange is not None or not IN_COLUMNS.isdisjoint(dag.nodes[sink.operator].operator.offered_forms(sink.port))
    return takes or _keeps_columns(dag, exchanges, source, sink)


def _keeps_columns(dag: CheckedDag, exchanges: Mapping[PortName, Exchange], source: PortName, sink: PortName) -> bool:
    """Return whether an operator that selects rows by a function has to handle batches.

    As records, rows without a class would have no columns for the operators behind it that take batches.
    """
    operator = dag.nodes[sink.operator].operator
    are_rows = schema_of(dag.types[source]) is None and _takes_rows(dag.types[sink])
    if not operator.selects_rows or not are_rows or BATCH not in forms_handled(operator, sink.port):
        return False
    outputs = (PortName(sink.operator, port) for port in output_ports(type(operator)) if port != "errors")
    streams = ((out, dag.stream_from(out)) for out in outputs)
    return any(_takes_batches(dag, exchanges, out, k) for out, stream in streams if stream is not None for k in stream.sinks)


def _takes_rows(tp: Any) -> bool:
    return (get_origin(tp) or tp) in (Any, object, dict, Mapping)


def preferred_form(arriving: str, offered: frozenset[str]) -> str:
    """Return the cheapest form that an operator offers for records that arrive as `record` or `batch`.

    >>> preferred_form("record", frozenset({"record", "stream", "batch"}))
    'stream'
    """
    preference = (BATCH, STREAM, RECORD, NET) if arriving == BATCH else (STREAM, RECORD, BATCH, NET)
    return next(form for form in preference if form in offered)


def _must_convert(dag: CheckedDag, source: PortName, sink: PortName, arriving: str) -> None:
    types = {dag.types[source], dag.types[sink]}
    if arriving == BATCH and any(map(_takes_rows, types)):
        return  # rows of batches are dicts
    if Any not in types and all(schema_of(tp) is None and open_fields(tp) is None for tp in types):
        keeps_rows = dag.nodes[sink.operator].operator.scope == "all"
        raise NotSupported(
            f"records of {type_name(dag.types[source])} cannot become batches on the way from {source} to {sink}",
            dag.nodes[sink.operator].where,
            "put a Map between that makes records of an attrs class, whose fields become columns: def row(record) -> Row; "
            + ('or, for results of each window alone, scope="window"' if keeps_rows else "or give the operator a record handler"),
        )
