"""Union: several streams of one type become one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, OutputPort
from dagflow.config import integer_from
from operators.transform.own_ports import OwnPorts, fixed

T = TypeVar("T", default=Any)


@attrs.define
class Union(OwnPorts, Generic[T]):
    """Emit the records of all inputs, unchanged. Records of one input keep their order.

    Args:
        count: the number of inputs. They are the ports `input_0`, `input_1`, … of `inputs`. All must be connected, to streams of
            one type.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Union[str](2), {"input_0": ["a", "b"], "input_1": ["c"]})["output"]
    ['a', 'b', 'c']

    In a DAG: `dag.add_stream("old", old.messages, both.inputs[0])`.
    """

    count: int = attrs.field(default=2, validator=integer_from(1), on_setattr=fixed)

    output = OutputPort[T]()

    @property
    def inputs(self) -> tuple[InputPort[T], ...]:
        """The input ports."""
        return tuple(getattr(self, f"input_{number}") for number in range(self.count))

    def _own_ports(self) -> tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]:
        return _inputs, (self.count,)


def _inputs(count: int) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for number in range(count):
        port: InputPort[Any] = InputPort[T]()  # type: ignore[valid-type]  # of the class that it will be a port of
        members |= {f"input_{number}": port, **_handlers(port, number)}
    return members


def _handlers(port: InputPort[Any], number: int) -> dict[str, Any]:
    def one(self: Union[Any], record: Any) -> None:
        self.output.emit(record)

    def several(self: Union[Any], records: Iterator[Any]) -> None:
        self.output.emit_all(records)

    def batch(self: Union[Any], batch: pa.RecordBatch) -> None:
        self.output.emit_batch(batch)

    return {
        f"pass_{number}": port.process(one),
        f"pass_all_{number}": port.stream(several),
        f"pass_batch_{number}": port.batch(batch),
    }
