"""From a plan to the programs that tasks run."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any

from dagflow.model.graph.dag import PortName
from dagflow.model.graph.partitioning import own_key
from dagflow.model.operator.base import Operator, fields_of
from dagflow.model.operator.context import OperatorContext
from dagflow.model.operator.dataframes import INPUT, OUTPUT, DataFrameOperator
from dagflow.model.operator.ports import BATCH, RECORD, InputPort, combiners_of
from dagflow.model.types.forms import schema_of
from dagflow.model.types.keys import key_of
from dagflow.planning.plan import DATAFRAME, Exchange, Plan
from dagflow.runtime.exchange.dataframes import TransformOutput, columns_of_port
from dagflow.runtime.stage.program import Combiner, OutputPlan, PortPlan, Program, ProgramOperator, SendPlan, SourcePlan
from dagflow.runtime.task.errors import NotPicklable


class WorkItems(Operator):
    """Stands at the driver's end of a stream that crosses to the tasks, and collects what they are to work on."""

    input = InputPort[Any]()

    def setup(self, context: OperatorContext) -> None:
        """Keep the context."""
        self._context = context

    @input.process
    def collect(self, item: Any) -> None:
        """Keep an item."""
        self.__dict__.setdefault("retracted" if self._context.retracts else "collected", []).append(item)

    @property
    def pending(self) -> Sequence[Any]:
        """The records collected since the last call of `take`."""
        items: Sequence[Any] = self.__dict__.get("collected", ())
        return items

    def take(self, *, retracted: bool = False) -> list[Any]:
        """Take the records collected since the last call, or those that were taken back."""
        items: list[Any] = self.__dict__.pop("retracted" if retracted else "collected", [])
        return items


def stage_program(plan: Plan, stage: str) -> Program:
    """Return the program of a stage."""
    names = next(s.operators for s in plan.stages if s.name == stage)
    operators = tuple(_operator(plan, name, set(names)) for name in names)
    sends = tuple(_send(plan, e) for e in plan.exchanges.values() if e.source.operator in names)
    receives = {e.tag: (k.operator, k.port) for k, e in plan.exchanges.items() if k.operator in names}
    return Program(stage, operators, sends, receives)


def _send(plan: Plan, exchange: Exchange) -> SendPlan:
    source, sink = exchange.source, exchange.sink
    node = plan.dag.nodes[sink.operator]
    methods = combiners_of(type(node.operator)).get(sink.port, {})
    if exchange.key != key_of(own_key(node, sink.port)):  # two records with the same key may be none that it would combine
        methods = {form: method for form, method in methods.items() if form != RECORD}
    columns = columns_of_port(plan, sink.operator, INPUT) if exchange.kind == DATAFRAME else None
    return SendPlan(
        tag=exchange.tag,
        source=(source.operator, source.port),
        sink=(sink.operator, sink.port),
        stage=plan.stage_of(sink.operator).name,
        kind=exchange.kind,
        key=exchange.key,
        type=plan.dag.types[source if columns is None or schema_of(plan.dag.types[sink]) is None else sink],
        columns=columns,
        combiner=Combiner(node.operator, methods) if methods else None,
    )


def driver_program(plan: Plan) -> Program:
    """Return the program of the driver: its operators, and a collector for every port that work items cross to."""
    operators = [_operator(plan, name, set(plan.driver), crossing=True) for name in plan.driver]
    for port in plan.work_ports():
        tp = plan.dag.types[port]
        operators.append(ProgramOperator(str(port), WorkItems(), {"input": PortPlan(RECORD, tp)}, {}))
    return Program("driver", tuple(operators))


def _as_written(plan: Plan, source: PortName) -> str:
    """Return an output port as its application names it: before the operators that the planner has added."""
    while source.operator not in plan.written.nodes and (above := plan.dag.upstream(source.operator)):
        source = above[0][0]
    return str(source)


def _taken(plan: Plan, source: PortName, sink: PortName) -> Any:
    """Return the type of the records that a port gets: where it takes any, what the stream carries, in whatever form it comes."""
    tp = plan.dag.types[sink]
    return plan.dag.types[source] if tp is Any or tp is object else tp


def _operator(plan: Plan, name: str, here: set[str], crossing: bool = False) -> ProgramOperator:
    node = plan.dag.nodes[name]
    inputs = {
        sink.port: PortPlan(
            plan.forms.handled[sink],
            _taken(plan, source, sink),
            SourcePlan(source.operator, source.port, plan.dag.types[source], _as_written(plan, source)),
            is_changing=source in plan.dag.changing,
        )
        for source, sink in plan.dag.upstream(name)
    }
    outputs = {}
    for stream in plan.dag.streams.values():
        if stream.source.operator != name:
            continue
        sinks = [(k.operator, k.port) for k in stream.sinks if k.operator in here and k not in plan.exchanges]
        if crossing:
            sinks += [(str(k), "input") for k in stream.sinks if k.operator not in here]
        batches = plan.forms.emitted[stream.source] == BATCH and not crossing
        outputs[stream.source.port] = OutputPlan(
            plan.dag.types[stream.source], tuple(sinks), batches, is_changing=stream.source in plan.dag.changing
        )
    operator = node.operator
    if isinstance(operator, DataFrameOperator):
        operator = TransformOutput(tuple(sorted(operator.columns_with_values(plan.dag.types[PortName(name, OUTPUT)]))))
    return ProgramOperator(name, operator, inputs, outputs)


def pickled(program: Program, plan: Plan | None = None, *, travels: bool = True) -> bytes:
    """Pickle a program. If it `travels`, user code goes by value (`dagflow.runtime.task.user_code`).

    A program that is loaded in this process must go by reference: loading a class by value would put copies of its methods, whose
    globals are copies too, in the place of the user's own.

    Raises NotPicklable, naming operator and property.
    """
    from dagflow.runtime.stage.by_value import dumps_in_process
    from dagflow.runtime.task.user_code import dump_by_value

    try:
        return dump_by_value(program) if travels else dumps_in_process(program)
    except Exception as error:  # picklers raise anything
        problems = [
            (item.name, _not_picklable({**fields_of(item.operator), "(its class)": type(item.operator)}))
            for item in program.operators
        ]
        problems += [(each.sink[0], _not_picklable({"partition_by": each.key})) for each in program.sends]
        for name, reason in problems:
            if reason is not None:
                where = plan.dag.nodes[name].where if plan is not None and name in plan.dag.nodes else ""
                raise NotPicklable(name, reason[0], reason[1], where) from error
        raise


def _not_picklable(values: dict[str, Any]) -> tuple[str, str] | None:
    from dagflow.runtime.stage.by_value import dumps

    for name, value in values.items():
        try:
            dumps(value)
        except Exception as error:  # noqa: BLE001
            return name, f"{type(error).__name__}: {error}"
    return None


def loaded(program_bytes: bytes) -> Program:
    """Load a program from its bytes: fresh copies of all operators."""
    program: Program = pickle.loads(program_bytes)  # made by this launch
    return program


def halves(programs: Iterable[Program], plan: Plan) -> dict[str, Operator]:
    """Return the driver's halves of the operators in tasks, by name. They are copies."""
    loaded_again = (loaded(pickled(program, plan, travels=False)) for program in programs)
    return {item.name: item.operator for program in loaded_again for item in program.operators}
