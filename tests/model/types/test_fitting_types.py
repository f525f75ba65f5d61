"""Which types fit where: never refused without need, and refused where records would not fit."""

from __future__ import annotations

import collections.abc as abc
import datetime
import enum
import re
import typing
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import (
    Annotated,
    Any,
    AnyStr,
    Generic,
    Literal,
    LiteralString,
    NamedTuple,
    Never,
    NewType,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
)

import attrs
import numpy as np
import pytest
from typing_extensions import TypeAliasType, TypeIs

from dagflow import DAG, InputOperator, InputPort, Operator, OutputPort, ReaderRecord
from dagflow.errors import PortTypeError
from dagflow.model.graph.checks import infer
from dagflow.model.graph.dag import PortName
from dagflow.model.types.comparison import bind, bind_callable, difference, type_name
from operators import FlatMap, Map

T = TypeVar("T")
U = TypeVar("U")
In_contra = TypeVar("In_contra", contravariant=True)
Number = TypeVar("Number", bound=float)
UserId = NewType("UserId", int)
Key = NewType("Key", UserId)
Name = TypeAliasType("Name", str)
Twice = TypeAliasType("Twice", tuple[T, T], type_params=(T,))  # type: ignore[valid-type, misc]


def alias_of_itself(name: str) -> Any:
    """As `type Json = dict[str, Json] | list[Json] | int` is from Python 3.12 on."""
    members = {
        "__name__": name,
        "__call__": lambda self: None,
        "__value__": property(lambda self: dict[str, self] | list[self] | int),
    }
    return type("TypeAliasType", (), members)()


Json = alias_of_itself("Json")
Other = alias_of_itself("Other")
Quoted = TypeAliasType("Quoted", "list[Quoted] | int")  # type: ignore[misc]


class Closable(Protocol):
    name: str

    def close(self) -> None: ...


@typing.runtime_checkable
class Sized(Protocol):
    def __len__(self) -> int: ...


class Delegate:
    def __getattr__(self, name: str) -> Any: ...


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Row(TypedDict):
    a: int


class Place(NamedTuple):
    x: int
    y: int


class Handler(Generic[In_contra]): ...


class Mock(Any): ...  # type: ignore[misc]


FITTING: list[tuple[Any, Any]] = [
    (Literal["a", "b"], str), (Literal["a"], Literal["a", "b"]), (Literal[1], float), (Literal["a", 1], str | int),
    (bool, Literal[True, False]), (bool, Literal[True] | Literal[False]), (Color, Literal[Color.RED, Color.BLUE]),
    (Literal[Color.RED], Color),
    (UserId, int), (int, UserId), (Key, int), (Key, UserId), (list[UserId], list[int]), (UserId, float),
    (UserId | None, int | None),
    (Annotated[int, "x"], int), (int, Annotated[int, "x"]), (list[Annotated[int, []]], list[int]),
    (Annotated[int, np.zeros(3)], int),
    (tuple[int, int], tuple[int, ...]), (tuple[int, ...], tuple[int, int]), (tuple[bool, ...], tuple[int, ...]),
    (tuple[int, str], tuple),
    (tuple[()], tuple[int, ...]), (tuple[int, str], abc.Sequence[int | str]), (Place, tuple[int, int]),
    (LiteralString, str), (str, LiteralString), (type(None), None), (None, type(None)), (None, int | None),
    (Never, int), (Self, int),
    (Name, str), (str, Name), (list[Name], list[str]), (Twice[int], tuple[int, int]), (tuple[int, int], Twice[int]),
    (Json, Json), (int, Json), (Json, Other), (dict[str, list[Json]], Other), (str, Quoted),
    (T, int), (int, T), (list[T], list[int]), (int, "int"), (int, Any | None), (Mock, int), (TypeIs[int], bool),
    (int, complex), (float, complex), (bytearray, bytes),
    (list, list[int]), (list[int], list), (list[int], abc.Sequence[int]), (list[int], Iterable[float]),
    (dict[str, int], abc.Mapping[str, int]),
    (dict[str, int], Iterable[str]), (str, abc.Sequence[str]), (dict[str, Any], dict[str, int]),
    (Generator[int, None, str], Iterator[int]),
    (Row, dict), (Row, abc.Mapping[str, object]), (dict[str, int], Row), (str, abc.Hashable), (list[int], Sized),
    (type[int], type), (type, type[int]), (type[bool], type[int]), (type[Color], Iterable), (type[int], Closable),
    (Callable[[int], int], Callable[[bool], int]), (Callable[[int], int], abc.Callable), (Handler[float], Handler[int]),
    (int, Closable), (Delegate, Sized),
    (np.int64, int), (int, np.int64), (np.float32, float), (np.bool_, bool), (np.str_, str), (str, np.str_),
    (np.int64, np.float64),
    (np.datetime64, datetime.datetime), (np.ndarray, np.ndarray),
]  # fmt: skip
DIFFERENT: list[tuple[Any, Any, str]] = [
    (Literal["a"], int, "Literal['a'] is not int"), (str, Literal["a"], "str is not Literal['a']"),
    (Literal["c"], Literal["a", "b"], "Literal['c'] is not Literal['a', 'b']"),
    (Literal[1], Literal[True], "Literal[1] is not Literal[True]"),
    (bool, Literal[True], "bool is not Literal[True]"), (str, UserId, "str is not UserId"),
    (UserId, str, "UserId is not str"),
    (Annotated[str, "x"], int, "str is not int"), (Name, int, "Name is not int"),
    (tuple[int, int], tuple[int], "tuple[int, int] is not tuple[int]"), (tuple[int, str], tuple[int, ...], "str is not int"),
    (tuple[int, ...], tuple[str, str], "int is not str"), (tuple[int, str], abc.Sequence[int], "str is not int"),
    (int | None, int, "None is not int"), (list[int | None], list[int], "None is not int"),
    (int | None, None, "int is not None"),
    (list[str], abc.Sequence[int], "str is not int"), (dict[str, int], abc.Mapping[str, str], "int is not str"),
    (int, Sized, "int is not Sized"),
    (str, Json, "str is none of dict[str, Json] | list[Json] | int"), (int, Row, "int is not Row"),
    (type[int], type[str], "int is not str"), (Handler[str], Handler[int], "int is not str"),
    (np.int64, str, "int64 is not str"), (str, np.int64, "str is not int64"),
    (np.int64, ReaderRecord[str], "int64 is not ReaderRecord[str]"),
    (list[str], list[int], "str is not int"), (ReaderRecord[UserId], ReaderRecord[str], "UserId is not str"),
]  # fmt: skip


def _named(value: object) -> str:
    """The same in every process: no addresses."""
    return re.sub(r" object at 0x[0-9a-f]+", "", str(value))


@pytest.mark.parametrize(("source", "sink"), FITTING, ids=_named)
def test_what_fits_or_cannot_be_told_is_no_mismatch(source: Any, sink: Any) -> None:
    assert difference(source, sink) is None


@pytest.mark.parametrize(("source", "sink", "reason"), DIFFERENT, ids=_named)
def test_what_does_not_fit_is_told(source: Any, sink: Any, reason: str) -> None:
    assert difference(source, sink) == reason


@pytest.mark.parametrize(
    ("pattern", "actual", "bound"),
    [
        (T, U, {}),
        (list[T], list[U], {T: Any}),
        (T, list[U], {T: list[Any]}),
        (T, Self, {}),
        (T, UserId, {T: UserId}),
        (Annotated[T, "x"], int, {T: int}),
        (list[T], Annotated[list[int], "x"], {T: int}),
        (Iterable[T], dict[str, int], {T: str}),
        (Iterable[T], tuple[int, str], {T: int | str}),
        (Iterable[T], str, {T: str}),
        (T | None, int | None, {T: int}),
        (T | str, int | str, {T: int}),
        (list[T] | T, list[int], {T: int}),
        (Number, int, {Number: int}),
        (Number, str, {Number: float}),
    ],
    ids=str,
)
def test_binding_by_shape(pattern: Any, actual: Any, bound: dict[Any, Any]) -> None:
    bindings: dict[Any, Any] = {}
    bind(pattern, actual, bindings)
    assert {k: v for k, v in bindings.items() if v is not Any} == {k: v for k, v in bound.items() if v is not Any}


@attrs.define
class Source(InputOperator, Generic[T]):
    output = OutputPort[T]()


@attrs.define
class Merge(Operator, Generic[T]):
    a = InputPort[T]()
    b = InputPort[T]()
    output = OutputPort[T]()

    @a.process
    def of_a(self, record: T) -> None: ...

    @b.process
    def of_b(self, record: T) -> None: ...


class IntMerge(Merge[int]): ...


def same(x: U) -> U:
    return x


def same_by_the_names_of_the_operator(x: T) -> T:
    return x


def crossed(x: U) -> list[U]:
    return [x]


def first(x: abc.Sequence[U]) -> U:
    return x[0]


def pairs(x: U) -> Iterator[tuple[U, int]]:
    yield x, 1


def half(x: Number) -> Number:
    return x


def upper(x: AnyStr) -> AnyStr:
    return x.upper()


def made(x: int) -> U: ...  # type: ignore[type-var, empty-body]


def through(tp: Any, operator: Any) -> tuple[dict[PortName, Any], list[Any]]:
    dag = DAG()
    source = dag.add_operator("source", Source[tp]())
    it = dag.add_operator("it", operator)
    dag.add_stream("s", source.output, it.input)
    return infer(dag)


@pytest.mark.parametrize(
    ("tp", "operator", "output"),
    [
        (ReaderRecord[str], Map(same), ReaderRecord[str]),
        (int, Map(same_by_the_names_of_the_operator), int),
        (int, Map(crossed), list[int]),
        (list[int], Map(first), int),
        (str, FlatMap(pairs), tuple[str, int]),
        (int, Map(half), int),
        (bytes, Map(upper), bytes),
        (int, Map(made), Any),
        (Any, Map(same), Any),
    ],
    ids=lambda value: type_name(value) if not isinstance(value, Operator) else value.function.__name__,  # type: ignore[attr-defined]
)
def test_generic_functions_are_solved_when_records_arrive(tp: Any, operator: Any, output: Any) -> None:
    types, problems = through(tp, operator)
    assert problems == []
    assert types[PortName("it", "output")] == output


@pytest.mark.parametrize(("tp", "function"), [(str, half), (int, upper), (int, first)])
def test_generic_functions_refuse_what_their_bounds_refuse(tp: Any, function: Any) -> None:
    _, problems = through(tp, Map(function))
    assert [type(p) for p in problems] == [PortTypeError]


def test_the_variables_of_two_functions_do_not_meet() -> None:
    bindings: dict[Any, Any] = {}
    bind_callable(Callable[[T], int], same, bindings)
    bind_callable(Callable[[U], int], same, bindings)
    assert bindings[T] is not bindings[U]


@attrs.frozen
class Animal: ...


@attrs.frozen
class Dog(Animal): ...


@attrs.frozen
class Cat(Animal): ...


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        (int, int | None, int | None),
        (int, float, float),
        (Dog, Animal, Animal),
        (Dog, Cat, Dog | Cat),
        (str, Any, str),
        (str, int, str | int),
    ],
    ids=str,
)
def test_two_inputs_of_one_variable_in_any_order(a: Any, b: Any, joined: Any, turned: bool) -> None:
    types, problems = merged(Merge(), *((b, a) if turned else (a, b)))
    assert problems == []
    assert types[PortName("m", "output")] == joined


def test_what_an_operator_says_itself_is_not_widened() -> None:
    _, problems = merged(IntMerge(), int, int | None)
    assert [p.difference for p in problems] == ["None is not int"]
    _, problems = merged(Merge[int](), str, int)
    assert [p.difference for p in problems] == ["str is not int"]


def merged(operator: Any, a: Any, b: Any) -> tuple[dict[PortName, Any], list[Any]]:
    dag = DAG()
    one, two = dag.add_operator("one", Source[a]()), dag.add_operator("two", Source[b]())
    m = dag.add_operator("m", operator)
    dag.add_stream("1", one.output, m.a)
    dag.add_stream("2", two.output, m.b)
    return infer(dag)
