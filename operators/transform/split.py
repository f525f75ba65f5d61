"""Split: a port for each predicate."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, get_args

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from dagflow import InputPort, OutputPort
from dagflow.config import one_of
from dagflow.errors import UnknownName
from operators.transform.expressions import AnyExpression, function_or_expression, holds_for, mask_of
from operators.transform.own_ports import OwnPorts, fixed

T = TypeVar("T", default=Any)

Matches = Literal["first", "all"]


def _as_dict(given: Mapping[str, Any]) -> dict[str, Any]:
    return dict(given)


def _predicates(instance: object, attribute: attrs.Attribute[Any], value: Mapping[str, Any]) -> None:
    """Validate predicates and the names of their ports."""
    if not value:
        raise ValueError(f"{attribute.name} is empty: write {{'port': predicate}}")
    for name, predicate in value.items():
        is_taken = hasattr(Split, name) or any(field.name == name for field in attrs.fields(Split))
        if is_taken or not name.isidentifier() or name.startswith("_"):
            raise ValueError(
                f"{attribute.name} has the port {name!r}: take a name like 'errors_only' that Split has no use for itself"
            )
        function_or_expression(instance, attribute, predicate)
    if len({callable(predicate) for predicate in value.values()}) > 1:
        raise ValueError(f"{attribute.name} must be functions or expressions, not some of each: records come in one form")


def _has_functions(split: Split[Any]) -> bool:
    return all(map(callable, split.predicates.values()))


class _Ports(dict[str, Any]):
    """The ports of predicates. The error for a wrong name lists the right ones."""

    def __missing__(self, name: str) -> Any:
        if name == "rest":
            raise UnknownName("port of a predicate", name, (), "split.rest is what no predicate holds for")
        raise UnknownName("port of a predicate", name, tuple(self))


@attrs.define
class Split(OwnPorts, Generic[T]):
    """Emit each record on the port whose predicate holds for it, unchanged and in order.

    Args:
        predicates: by the name of its port, a predicate as `Filter` takes it: all are functions, or all are expressions. The
            ports are in `outputs`.
        matches: `first` emits a record on the first port whose predicate holds, `all` on each of them.

    Records for which no predicate holds go to the port `rest`. Ports need not be connected. Raises ExpressionRefused for an
    expression that does not fit the columns.

    >>> from dagflow.testing import run_operator
    >>> from operators import col
    >>> by_length = Split({"short": lambda word: len(word) < 3, "long": lambda word: len(word) > 5})
    >>> emitted = run_operator(by_length, {"input": ["a", "tree", "to", "question"]})
    >>> emitted["short"], emitted["long"], emitted["rest"]
    (['a', 'to'], ['question'], ['tree'])
    >>> by_size = Split[int]({"small": col("value") < 10, "even": col("value") % 2 == 0}, matches="all")
    >>> emitted = run_operator(by_size, {"input": [4, 11, 12]})
    >>> emitted["small"], emitted["even"], emitted["rest"]
    ([4], [4, 12], [11])

    In a DAG: `dag.add_stream("long words", split.outputs["long"], writer.input)`.
    """

    selects_rows: ClassVar[bool] = True

    predicates: Mapping[str, Callable[[T], object] | AnyExpression] = attrs.field(
        converter=_as_dict, validator=_predicates, on_setattr=fixed
    )
    matches: Matches = attrs.field(default="first", kw_only=True, validator=one_of(get_args(Matches)))

    input = InputPort[T]()
    rest = OutputPort[T]()

    @property
    def outputs(self) -> Mapping[str, OutputPort[T]]:
        """The output ports of the predicates."""
        return MappingProxyType(_Ports({name: getattr(self, name) for name in self.predicates}))

    def _own_ports(self) -> tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]:
        return _outputs, tuple(self.predicates)

    def offered_forms(self, port: str) -> frozenset[str]:
        """Return records where the predicates are functions. Only rows that would lose their columns come in batches."""
        return super().offered_forms(port) - ({"batch"} if _has_functions(self) else set())

    @input.process(when=_has_functions)
    def split(self, record: T) -> None:
        """Emit the record on the ports whose predicates hold."""
        self.split_all(iter([record]))

    @input.stream(when=_has_functions)
    def split_all(self, records: Iterator[T]) -> None:
        """Do the same for many records."""
        routes = [(predicate, self.outputs[name].emit) for name, predicate in self.predicates.items()]
        first_only, rest = self.matches == "first", self.rest.emit
        for record in records:
            matched = False
            for predicate, emit in routes:
                if predicate(record):  # type: ignore[operator]
                    matched = True
                    emit(record)
                    if first_only:
                        break
            if not matched:
                rest(record)

    @input.batch
    def split_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        records = self.input.records_of(batch) if _has_functions(self) else []
        left: Any = None  # the rows that no predicate has held for so far
        for name, predicate in self.predicates.items():
            if callable(predicate):
                mask = holds_for(records, predicate, among=None if self.matches == "all" else left)
            else:
                mask = mask_of(batch, predicate, type(self).__name__)
            self._emit_rows(self.outputs[name], batch, mask if left is None or self.matches == "all" else pc.and_(mask, left))
            left = pc.invert(mask) if left is None else pc.and_not(left, mask)
        self._emit_rows(self.rest, batch, left)

    @staticmethod
    def _emit_rows(port: OutputPort[T], batch: pa.RecordBatch, mask: Any) -> None:
        if port.is_connected and (rows := batch.filter(mask)).num_rows:
            port.emit_batch(rows)


def _outputs(*names: str) -> dict[str, Any]:
    return {name: OutputPort[T]() for name in names}  # type: ignore[valid-type]  # of the class that they will be ports of
