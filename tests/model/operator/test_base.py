from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, TypeVar

import attrs
import cloudpickle
import pytest

from dagflow import InputPort, MapState, Operator, OutputPort, State, WindowState
from dagflow.errors import ClassWrong, FieldFrozen, PortUnbound, StateDeclaration
from dagflow.model.operator.ports import handlers_of, input_ports, output_ports
from dagflow.model.operator.state import freeze, renew, thaw

T = TypeVar("T")


@attrs.define
class Generic1(Operator, Generic[T]):
    value: int = 0
    _private: str = "p"
    made: int = attrs.field(default=1, init=False)

    input = InputPort[T]()
    output = OutputPort[T]()
    count = WindowState(0)
    seen = State[dict[str, int]](factory=dict)

    def setup(self, context: Any) -> None:
        self.connection = "open"

    @input.process
    def each(self, record: T) -> None: ...

    @input.batch
    def each_batch(self, batch: Any) -> None: ...


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_fields_and_type_arguments_travel_and_nothing_else(pickler: Any) -> None:
    operator: Any = Generic1[int](5, "q", on_error="skip")
    operator.setup(None)
    operator.count = 3
    freeze(operator)
    copy: Any = pickle.loads(pickler.dumps(operator))
    assert type(copy) is Generic1
    assert (copy.value, copy._private, copy.on_error, copy.count) == (5, "q", "skip", 0)
    assert copy.__orig_class__ == Generic1[int]
    assert not hasattr(copy, "connection")


def test_ports_belong_to_their_instance() -> None:
    one, other = Generic1[int](), Generic1[int]()
    assert one.output is one.output
    assert one.output is not other.output
    assert one.output.operator is one
    assert repr(one.output) == "<OutputPort Generic1.output>"
    assert repr(Generic1.output) == "<OutputPort unbound.output>"
    assert list(input_ports(Generic1)) == ["input"]
    assert list(output_ports(Generic1)) == ["errors", "output"]


def test_emitting_outside_a_run_says_what_to_do() -> None:
    with pytest.raises(PortUnbound) as caught:
        Generic1[int]().output.emit(1)
    assert str(caught.value) == (
        "Generic1.output: emit() works only within a window: in begin_window(), handlers, emit_tuples() and end_window()\n"
        "  help: in a test, use dagflow.testing.run_operator"
    )


def test_an_override_of_one_form_hides_the_forms_of_its_bases() -> None:
    class Overrides(Generic1[int]):
        def each(self, record: int) -> None: ...

    class Redecorates(Generic1[int]):
        @Generic1.input.stream
        def all(self, records: Iterator[int]) -> None: ...

    class Neither(Generic1[int]): ...

    assert handlers_of(Generic1) == {"input": {"record": "each", "batch": "each_batch"}}
    assert handlers_of(Overrides) == {"input": {"record": "each"}}
    assert handlers_of(Redecorates) == {"input": {"stream": "all"}}
    assert handlers_of(Neither) == handlers_of(Generic1)


def test_a_port_that_is_hidden_is_no_port() -> None:
    class Hidden(Generic1[int]):
        output = None  # type: ignore[assignment]

    assert list(output_ports(Hidden)) == ["errors"]


def test_a_class_that_forgot_attrs_is_refused_with_the_line_to_write() -> None:
    class Forgot(Operator):
        least: int = 1

    with pytest.raises(ClassWrong) as caught:
        Forgot()
    assert str(caught.value).endswith(
        "Forgot: it declares least but is not an attrs class\n  help: write @attrs.define above class Forgot"
    ) or "write @attrs.define above class" in str(caught.value)


def test_an_annotated_port_is_refused() -> None:
    with pytest.raises(ClassWrong, match="port 'input' is annotated, which makes it a field"):

        class Annotated(Operator):
            input: InputPort[int] = InputPort[int]()


def test_so_is_an_annotated_state_but_for_a_class_variable() -> None:
    with pytest.raises(ClassWrong, match=r"state 'counts' is annotated(.|\n)*counts = MapState\["):

        class Annotated(Operator):
            counts: MapState[str, int] = MapState[str, int]()

    class Declared(Operator):
        counts: ClassVar[MapState[str, int]] = MapState[str, int]()

    assert Declared().counts == {}


def test_a_subclass_without_fields_needs_no_decorator() -> None:
    class Plain(Generic1[int]):
        least = 3

    assert Plain(4).value == 4


def test_on_error_takes_three_words() -> None:
    with pytest.raises(ValueError, match="on_error is 'ignore', but must be 'fail', 'skip' or 'route'"):
        Generic1[int](on_error="ignore")  # type: ignore[arg-type]


def test_frozen_operators_take_declared_state_only() -> None:
    operator: Any = Generic1[int]()
    operator.anything = 1  # before the freeze, as setup does
    freeze(operator)
    operator.count = 5
    operator.seen = {"a": 1}
    for name in ("value", "anything", "new"):
        with pytest.raises(FieldFrozen, match=f"Generic1 assigns {name!r} while it runs"):
            setattr(operator, name, 2)
    with pytest.raises(FieldFrozen):
        del operator.anything
    assert isinstance(operator, Generic1)
    renew(operator)
    assert (operator.count, operator.seen) == (0, {"a": 1})
    thaw(operator)
    operator.anything = 3
    assert type(operator) is Generic1


def test_each_instance_has_state_of_its_own() -> None:
    one, other = Generic1[int](), Generic1[int]()
    one.seen["a"] = 1
    assert other.seen == {}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (((), {}), "WindowState: give either a default or a factory"),
        (((1,), {"factory": int}), "WindowState: give either a default or a factory"),
        ((([],), {}), "WindowState: a list would be shared: write factory=list"),
    ],
)
def test_declarations_that_would_share_are_refused(arguments: Any, text: str) -> None:
    with pytest.raises(StateDeclaration) as caught:
        WindowState(*arguments[0], **arguments[1])
    assert str(caught.value) == text


def test_a_merge_is_a_function() -> None:
    with pytest.raises(StateDeclaration, match="State: merge is 'sum': give a function of a list of values"):
        State(0, merge="sum")  # type: ignore[arg-type]


@attrs.define
class Scaled(Operator):
    """Handles batches only if they need no rounding."""

    digits: int | None = None

    input = InputPort[float]()
    output = OutputPort[float]()

    @input.process(when=lambda operator: operator.digits is not None)
    def each(self, number: float) -> None: ...

    @input.batch(when=lambda operator: operator.digits is None)
    def each_batch(self, batch: Any) -> None: ...


def test_a_handler_says_when_it_applies() -> None:
    assert handlers_of(Scaled) == {"input": {"record": "each", "batch": "each_batch"}}
    assert Scaled().offered_forms("input") == {"batch"}
    assert Scaled(2).offered_forms("input") == {"record"}


def test_a_subclass_replaces_the_condition_with_the_decorator() -> None:
    class Keeps(Scaled):
        def each(self, number: float) -> None: ...

        def each_batch(self, batch: Any) -> None: ...

    class Always(Scaled):
        @Scaled.input.batch
        def each_batch(self, batch: Any) -> None: ...

    assert Keeps(2).offered_forms("input") == {"record"}
    assert Always(2).offered_forms("input") == {"batch"}
