from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar, Union

import attrs
import pytest
import typing_extensions

from dagflow import DAG, FileBlockMetadata, InputOperator, InputPort, Operator, OutputPort, ReaderRecord
from dagflow.model.graph.checks import infer
from dagflow.model.graph.dag import PortName
from dagflow.model.graph.infer import own_bindings, port_types
from dagflow.model.types.comparison import bind, bind_callable, difference, substitute, type_name, variables_in
from operators import BlockReader, Filter, FlatMap, Map

T = TypeVar("T")
U = TypeVar("U")


class Animal: ...


class Dog(Animal): ...


@pytest.mark.parametrize(
    ("source", "sink", "reason"),
    [
        (str, str, None),
        (str, int, "str is not int"),
        (Any, int, None),
        (int, Any, None),
        (int, object, None),
        (int, float, None),
        (float, int, "float is not int"),
        (Dog, Animal, None),
        (Animal, Dog, "Animal is not Dog"),
        (list[Dog], list[Animal], None),
        (list[str], list[int], "str is not int"),
        (list[str], dict[str, str], "list[str] is not dict[str, str]"),
        (str | None, str, "None is not str"),
        (str, str | None, None),
        (bytes, str | int, "bytes is none of str | int"),
        (Union[int, str], str | int, None),  # noqa: UP007  # as users still write it
        (ReaderRecord[str], ReaderRecord[int], "str is not int"),
        (ReaderRecord[str], FileBlockMetadata, "ReaderRecord[str] is not FileBlockMetadata"),
    ],
)
def test_the_smallest_difference(source: Any, sink: Any, reason: str | None) -> None:
    assert difference(source, sink) == reason


@pytest.mark.parametrize(
    ("tp", "name"),
    [(None, "None"), (T, "~T"), (list[T], "list[~T]"), (dict[str, int | None], "dict[str, int | None]"), (Any, "Any")],  # type: ignore[valid-type]
)
def test_types_are_named_as_users_write_them(tp: Any, name: str) -> None:
    assert type_name(tp) == name


def test_variables_are_found_and_replaced() -> None:
    pattern = dict[str, list[T | None]]  # type: ignore[valid-type]
    assert variables_in(Callable[[T], U]) == [T, U]  # type: ignore[arg-type]
    assert substitute(pattern, {T: int}) == dict[str, list[int | None]]
    assert substitute(pattern, {}) == dict[str, list[Any | None]]
    assert substitute(Callable[[T], U], {T: int}) is Any


def test_variables_are_bound_by_shape() -> None:
    bindings: dict[Any, Any] = {}
    bind(dict[T, list[U]], dict[str, list[int]], bindings)  # type: ignore[valid-type]
    assert bindings == {T: str, U: int}
    bind(T, bytes, bindings)
    assert bindings[T] is str, "the first binding stays"
    bind(list[U], dict[str, str], bindings := {})  # type: ignore[valid-type]
    assert bindings == {}
    bind(T | None, int, bindings)
    assert bindings == {T: int}


def with_hints(line: str) -> int:
    return len(line)


def generator(line: str) -> Iterator[bytes]:
    yield line.encode()


class Callee:
    def __call__(self, line: str) -> float:
        return 1.0


@pytest.mark.parametrize(
    ("function", "bound"),
    [
        (with_hints, {T: str, U: int}),
        (Callee(), {T: str, U: float}),
        (int, {U: int}),
        (lambda line: 1, {}),
        (len, {}),
    ],
)
def test_functions_tell_their_types(function: Any, bound: dict[Any, Any]) -> None:
    bindings: dict[Any, Any] = {}
    bind_callable(Callable[[T], U], function, bindings)
    assert bindings == bound


def test_what_a_generator_yields() -> None:
    bindings: dict[Any, Any] = {}
    bind_callable(Callable[[T], Iterable[U]], generator, bindings)
    assert bindings == {T: str, U: bytes}


@attrs.define
class Pair(Operator, Generic[T, U]):
    left = InputPort[T]()
    right = InputPort[U](optional=True)
    output = OutputPort[dict[T, U]]()  # type: ignore[valid-type]


class Half(Pair[str, U]): ...


class Whole(Half[int]): ...


@pytest.mark.parametrize(
    ("operator", "output"),
    [
        (Pair(), dict[Any, Any]),
        (Pair[str, int](), dict[str, int]),
        (Half[bytes](), dict[str, bytes]),
        (Whole(), dict[str, int]),
        (Map(with_hints), int),
        (Map[Any, bytes](len), bytes),
        (FlatMap(generator), bytes),
        (Filter[int](bool), int),
        (Filter(lambda x: True), Any),
    ],
    ids=lambda value: type_name(value) if not isinstance(value, Operator) else type(value).__name__,
)
def test_what_an_operator_says_of_itself(operator: Operator, output: Any) -> None:
    assert port_types(operator, own_bindings(operator))["output"] == output


def test_readers_have_types_of_their_own() -> None:
    assert port_types(r := BlockReader(), own_bindings(r))["messages"] == ReaderRecord[str]
    assert port_types(r2 := BlockReader(int), own_bindings(r2))["messages"] == ReaderRecord[int]


@attrs.define
class Source(InputOperator, Generic[T]):
    output = OutputPort[T]()


def test_types_flow_forward_through_operators_that_do_not_know_them() -> None:
    dag = DAG()
    source = dag.add_operator("source", Source[list[int]]())
    keep = dag.add_operator("keep", Filter(lambda x: True))
    again = dag.add_operator("again", Filter(lambda x: True))
    each = dag.add_operator("each", Map(lambda x: 1))
    dag.add_stream("a", source.output, keep.input)
    dag.add_stream("b", keep.output, again.input, each.input)
    types, problems = infer(dag)
    assert problems == []
    assert types[PortName("again", "output")] == list[int]
    assert types[PortName("each", "input")] == list[int]
    assert types[PortName("each", "output")] is Any


TextByDefault = typing_extensions.TypeVar("TextByDefault", default=str)
BytesByDefault = typing_extensions.TypeVar("BytesByDefault", default=bytes)


@attrs.define
class Base(Operator, Generic[TextByDefault]):
    convert: Callable[[str], TextByDefault] | None = None
    output = OutputPort[list[TextByDefault]]()


class Derived(Base[BytesByDefault], Generic[BytesByDefault]): ...


def test_defaults_reach_the_variables_of_base_classes() -> None:
    types = [port_types(each, own_bindings(each))["output"] for each in (Base(), Derived(), Derived(int), Derived(lambda _: 1))]
    assert types == [list[str], list[bytes], list[int], list[Any]]
