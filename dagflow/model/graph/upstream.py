"""Facts about the records of a port, looked up along the streams where the records come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from dagflow.model.graph.dag import OperatorNode, PortName, Stream
from dagflow.model.operator.ports import ports_of
from dagflow.model.types.comparison import is_variable

T = TypeVar("T")


def nearest_declaration(
    operators: Mapping[str, OperatorNode], streams: Iterable[Stream], port: PortName, said: Callable[[PortName], T | None]
) -> T | None:
    """Return the nearest declaration about the records of an output port: by its operator, or one upstream; None without any.

    They pass operators whose output has the type of their input, whatever it is (`InputPort[R]`, `OutputPort[R]`): these let
    batches through, or rows of them. Streams must not lead back.
    """
    nearest = said(port)
    if nearest is not None:
        return nearest
    declared = ports_of(type(operators[port.operator].operator))
    kind = declared[port.port].declared_type
    if not is_variable(kind):
        return None
    streams = tuple(streams)
    arriving = [(s.source, sink) for s in streams for sink in s.sinks if sink.operator == port.operator]
    sources = [source for source, sink in arriving if declared[sink.port].declared_type is kind]
    return nearest_declaration(operators, streams, sources[0], said) if len(sources) == 1 else None
