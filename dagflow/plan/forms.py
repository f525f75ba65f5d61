"""In which form records travel along each stream, and where they must be converted."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.errors.dag import NotSupported
from dagflow.model.checks import CheckedDag
from dagflow.model.dag import PortName
from dagflow.model.forms import schema_of
from dagflow.model.ports import BATCH, RECORD, STREAM, output_ports
from dagflow.model.types import type_name


@attrs.frozen
class Forms:
    """What `choose_forms` has chosen.

    Attributes:
        emitted: the form (`record` or `batch`) of every output port in use.
        handled: the form of the handler that is called on every input port in use.
        converted: input ports before which records are converted, with the direction.
    """

    emitted: dict[PortName, str]
    handled: dict[PortName, str]
    converted: dict[PortName, str]


def choose_forms(dag: CheckedDag) -> Forms:
    """Neighbours that both handle batches exchange batches; else records travel; converted only where one side cannot."""
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
            handled[sink] = preferred_form(emitted[source], offered)
            if (handled[sink] == BATCH) != (emitted[source] == BATCH):
                converted[sink] = "batches → records" if emitted[source] == BATCH else "records → batches"
                _must_convert(dag, source, sink)
        forms = {handled[sink] for _, sink in dag.upstream(name)} or {RECORD}
        for port in output_ports(type(node.operator)):
            out = PortName(name, port)
            stream = dag.stream_from(out)
            if stream is None:
                continue
            can = (
                frozenset().union(*(node.operator.emitted_forms(port, form) for form in forms)) if port != "errors" else {RECORD}
            )
            take = any(BATCH in dag.nodes[k.operator].operator.offered_forms(k.port) for k in stream.sinks)
            emitted[out] = BATCH if BATCH in can and (take or RECORD not in can) else RECORD
    return Forms(emitted, handled, converted)


def preferred_form(arriving: str, offered: frozenset[str]) -> str:
    """Of the forms that an operator offers, the one that takes least for records that arrive as `record` or `batch`.

    >>> preferred_form("record", frozenset({"record", "stream", "batch"}))
    'stream'
    """
    preference = (BATCH, STREAM, RECORD) if arriving == BATCH else (STREAM, RECORD, BATCH)
    return next(form for form in preference if form in offered)


def _must_convert(dag: CheckedDag, source: PortName, sink: PortName) -> None:
    types = {dag.types[source], dag.types[sink]}
    if Any not in types and all(schema_of(tp) is None for tp in types):
        raise NotSupported(
            f"records of {type_name(dag.types[source])} cannot become batches on the way from {source} to {sink}",
            dag.nodes[sink.operator].where,
            "use a type with an Arrow form (builtins, attrs classes of them), or give the operator a record handler",
        )
