"""The columns of streams, solved along the DAG, like types: their names, their types, and which of them identify a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_origin

import attrs

from dagflow.model.graph.dag import OperatorNode, PortName, Stream
from dagflow.model.operator.ports import ports_of
from dagflow.model.operator.stream_columns import StreamColumns
from dagflow.model.types.comparison import is_variable
from dagflow.model.types.expressions import resolve
from dagflow.model.types.forms import VALUE, schema_of
from dagflow.model.types.keys import known_columns

UNKNOWN = StreamColumns()


@attrs.define
class ColumnSolver:
    """Find what is known about the rows of ports. Streams must not lead back.

    Attributes:
        operators, streams: of the DAG.
        types: the types of its ports.
        agreed: what readers have agreed on, by operator: then their columns are known.
        is_running: whether other readers have no rows: then those columns are theirs that their properties declare.
    """

    operators: Mapping[str, OperatorNode]
    streams: Mapping[str, Stream]
    types: Mapping[PortName, Any]
    agreed: Mapping[str, Any] = attrs.field(factory=dict)
    is_running: bool = False
    _found: dict[PortName, StreamColumns] = attrs.field(factory=dict, init=False)
    _sources: dict[PortName, PortName] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._sources = {sink: stream.source for stream in self.streams.values() for sink in stream.sinks}

    def into(self, sink: PortName) -> StreamColumns:
        """Return what is known about the rows that arrive at an input port: what its type says comes first."""
        arriving = self.behind(self._sources[sink]) if sink in self._sources else UNKNOWN
        declared = _of_type(self.types.get(sink, Any))
        return arriving if declared is None else attrs.evolve(arriving, types=declared)

    def behind(self, port: PortName) -> StreamColumns:
        """Return what is known about the rows of an output port."""
        if port not in self._found:
            self._found[port] = self._solved(port)
        return self._found[port]

    def _solved(self, port: PortName) -> StreamColumns:
        operator = self.operators[port.operator].operator
        derived = operator.result_columns(port.port, lambda name: self.into(PortName(port.operator, name)))
        if derived is None:
            derived = self._passed_on(port)
            if not operator.selects_rows:
                derived = StreamColumns(derived.types)
        said = self._said(port)
        if said is None:
            said = _of_type(self.types.get(port, Any))
        return derived if said is None else attrs.evolve(derived, types=said)

    def _said(self, port: PortName) -> Mapping[str, str | None] | None:
        """Return the columns that an operator itself knows."""
        operator = self.operators[port.operator].operator
        try:
            typed = operator.emitted_columns(port.port, self.agreed.get(port.operator))
            if typed is None and self.is_running and port.operator not in self.agreed:
                typed = operator.declared_columns(port.port)
            if typed is not None:
                return dict(typed)
            names = operator.column_names(port.port)
        except ValueError:  # its properties are wrong, which the check of properties tells
            return None
        return None if names is None else dict.fromkeys(names)

    def _passed_on(self, port: PortName) -> StreamColumns:
        """Return what is known about the rows of the one input port that has the type of an output port, whatever it is.

        Such an operator (`InputPort[R]`, `OutputPort[R]`) lets rows through, or some of them.
        """
        declared = ports_of(type(self.operators[port.operator].operator))
        kind = declared[port.port].declared_type
        if not is_variable(kind):
            return UNKNOWN
        sinks = [sink for sink in self._sources if sink.operator == port.operator and declared[sink.port].declared_type is kind]
        return self.behind(self._sources[sinks[0]]) if len(sinks) == 1 else UNKNOWN


def _of_type(tp: Any) -> Mapping[str, str | None] | None:
    """Return the columns that a type of records declares; None for types whose objects may be batches, or rows."""
    names, schema = known_columns(tp), schema_of(tp)
    if names == (VALUE,) and (schema is None or (get_origin(resolve(tp)) or resolve(tp)) is dict):
        return None
    return None if names is None else dict.fromkeys(names) if schema is None else {each.name: str(each.type) for each in schema}
