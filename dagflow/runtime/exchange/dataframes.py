"""Operators whose body is a function of DataFrames: what comes to it, and what it makes, between two levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.model.graph.dag import PortName
from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import OperatorContext
from dagflow.model.operator.dataframes import INPUT, OUTPUT, DataFrameOperator
from dagflow.model.operator.ports import InputPort, OutputPort
from dagflow.planning.plan import DATAFRAME, Exchange, Plan
from dagflow.runtime.exchange.errors import NullMade
from dagflow.runtime.exchange.rows import Row, pieces_of, tag_of
from dagflow.runtime.stage.program import TRANSFORMED, DataFrameTransform, TaskSpec

if TYPE_CHECKING:
    import pyarrow as pa


def check_values(batch: pa.RecordBatch, names: Iterable[str], operator: str) -> None:
    """Raise NullMade if a batch that a transform has made has a null in one of these columns."""
    for name in names:
        if batch.column(name).null_count:
            raise NullMade(operator, name)


@attrs.define
class TransformOutput(Operator):
    """The stand-in, in tasks, of an operator whose body stays on the driver. It passes on the rows that Spark has made.

    Args:
        with_values: the columns that must not be null.
    """

    with_values: tuple[str, ...] = ()

    input = InputPort[Any]()
    output = OutputPort[Any]()

    def setup(self, context: OperatorContext) -> None:
        """Keep the name for errors."""
        self._name = context.name

    @input.batch
    def each(self, batch: pa.RecordBatch) -> None:
        """Pass a batch on. Raises NullMade."""
        check_values(batch, self.with_values, self._name)
        self.output.emit_batch(batch)


def has_transforms(plan: Plan) -> bool:
    """Return whether windows have DataFrame transforms. They run one at a time: their temporary views would collide."""
    return any(exchange.kind == DATAFRAME for exchange in plan.exchanges.values())


def columns_of_port(plan: Plan, operator: str, port: str) -> pa.Schema:
    """Return the columns of a port of a DataFrame operator."""
    node = plan.dag.nodes[operator]
    assert isinstance(node.operator, DataFrameOperator)
    columns = node.operator.columns(port, plan.dag.types[PortName(operator, port)])
    assert columns is not None  # the plan has checked it
    return columns


def transforms_of(plan: Plan, tasks: Sequence[TaskSpec]) -> dict[str, DataFrameTransform]:
    """Return the transforms of a window's tasks, by the stage that gets their results."""
    exchanges = {e.sink.operator: e for e in plan.exchanges.values() if e.kind == DATAFRAME}
    first = (task for task in tasks if task.partition == 0 and task.head in exchanges and task.layout.level)
    return {task.stage: _transform(plan, exchanges[task.head], task) for task in first}


def _transform(plan: Plan, exchange: Exchange, task: TaskSpec) -> DataFrameTransform:
    operator = plan.dag.nodes[task.head].operator
    assert isinstance(operator, DataFrameOperator)
    return DataFrameTransform(
        operator=task.head,
        window=task.window,
        level=task.layout.level,
        tag=exchange.tag,
        first=task.layout.place,
        partitions=task.partitions,
        given=columns_of_port(plan, task.head, INPUT),
        made=columns_of_port(plan, task.head, OUTPUT),
        function=operator.transform,
    )


def transformed_rows(batches: Iterable[pa.RecordBatch], transform: DataFrameTransform, partition: int) -> Iterator[Row]:
    """Yield the rows that bring a transform's results to the tasks of its operator. `partition`: the Spark partition."""
    number = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        for piece in pieces_of(batch):
            place = transform.first + (partition + number) % transform.partitions
            yield Row(place, tag_of(transform.tag), TRANSFORMED + partition, (transform.tag << 40) + number, piece)
            number += 1
