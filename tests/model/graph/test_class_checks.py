"""Declarations that would mean something else than they say: each is refused when the DAG is checked, with file and line."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

import attrs
import pyarrow as pa
import pytest

import operators
from dagflow import DAG, InputOperator, InputPort, Module, Operator, OutputPort, ProxyInputPort, State, WindowState
from dagflow.errors import (
    ClassWrong,
    ConstructorWritten,
    DagErrors,
    HandlerTwice,
    HandlerTypeWrong,
    NameReserved,
    NotAnOperator,
    NotAPartitioner,
    SignatureWrong,
)
from dagflow.model.graph.checks import check
from dagflow.model.graph.class_checks import handler_types, handlers_twice, names_taken
from dagflow.model.graph.expand import expand
from dagflow.scaling import StatelessPartitioner
from operators import Console, FileSplitterInput, Map

T = TypeVar("T")


def problems(*found: Operator, **attributes: Any) -> list[Any]:
    """Return the mistakes in a DAG that has some operators, but for missing connections."""
    dag = DAG()
    for number, operator in enumerate(found):
        dag.add_operator(f"o{number}", operator, **attributes)
    try:
        check(dag)
    except DagErrors as error:
        told = list(error.problems)
    except Exception as error:  # noqa: BLE001  # the only one
        told = [error]
    else:
        told = []
    return [each for each in told if each.code not in ("DF009", "DF011", "DF015")]


def line(text: str, cls: type) -> str:
    """`FILE:LINE` of a text in the source of a class."""
    lines, first = inspect.getsourcelines(cls)
    path = Path(__file__).relative_to(Path.cwd())
    return f"{path}:{first + next(number for number, each in enumerate(lines) if text in each)}"


@attrs.define
class Twice(Operator):
    input = InputPort[str]()

    @input.process
    def one(self, record: str) -> None: ...

    @input.process
    def other(self, record: str) -> None: ...


@attrs.define
class Again(Twice):
    """Another method for a port of the base class is how handlers are overridden."""

    @Twice.input.process
    def third(self, record: str) -> None: ...


def test_two_handlers_for_one_port() -> None:
    (found,) = problems(Twice())
    assert type(found) is HandlerTwice
    assert str(found) == (
        "class Twice decorates two methods with @input.process, but only one of them would be called\n"
        f"  first   {line('@input.process', Twice)}\n"
        f"  second  {found.second}\n"
        "  help: remove one of the decorators; if both methods are needed, call one from the other"
    )
    assert [type(each) for each in problems(Again())] == [HandlerTwice]  # that of its base


@attrs.define
class Forms(Operator):
    """A handler of each form, and one method for two ports, are correct."""

    input = InputPort[T]()  # type: ignore[valid-type]
    other = InputPort[str]()

    @input.process
    @other.process
    def one(self, record: Any) -> None: ...

    @input.stream
    def many(self, records: Iterator[Any]) -> None: ...

    @input.batch
    def batch(self, batch: pa.RecordBatch) -> None: ...

    @input.combine
    def combine(self, one: Any, other: Any) -> Any: ...


def test_forms_are_no_mistakes() -> None:
    assert problems(Forms()) == []


def with_field(name: str, base: type = Operator) -> Any:
    """A class with a property of a name."""
    return attrs.define(type("Named", (base,), {"__annotations__": {name: int}, name: 3}))


RESERVED = ["errors", "context", "on_error", "setup", "end_window", "check", "partitioner", "partition_by", "port", "committed"]


@pytest.mark.parametrize("name", RESERVED)
def test_properties_of_reserved_names(name: str) -> None:
    found = list(names_taken(with_field(name), Operator))
    assert [(type(each), each.name, each.kind) for each in found] == [(NameReserved, name, "property")]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["emit_tuples", "is_exhausted", "watermark"])
def test_names_of_input_operators(name: str) -> None:
    assert [each.code for each in names_taken(with_field(name, InputOperator), InputOperator)] == ["DF052"]
    assert list(names_taken(with_field(name), Operator)) == []


@pytest.mark.parametrize("name", ["populate_dag", "check"])
def test_names_of_modules(name: str) -> None:
    assert [each.code for each in names_taken(with_field(name, Module), Module)] == ["DF052"]


@attrs.define
class Hidden(Operator):
    output: str = "out"
    errors: int = 3
    setup = State(0)
    context = WindowState(0)


@attrs.define
class Hiding(Map[str, str]):
    output: str = "out"  # type: ignore[assignment]


def test_reserved_names_are_told_with_their_lines() -> None:
    found = problems(Hidden())
    assert {type(each) for each in found} == {NameReserved}
    assert sorted((each.name, each.kind) for each in found) == [("context", "state"), ("errors", "property"), ("setup", "state")]
    by_name = {each.name: each for each in found}
    assert str(by_name["errors"]) == (
        "class Hidden has a property 'errors', but that name is reserved for the port of records that could not be handled "
        f"({line('errors: int', Hidden)})\n  help: give the property another name, such as my_errors"
    )
    (hiding,) = problems(Hiding(str.strip))
    assert hiding.meaning == "a port of its base class"


@attrs.define
class Good(Operator):
    """An operator that uses names of the framework in ways that are allowed."""

    partitionable = False
    partitioner = None
    errors = OutputPort[str]()  # type: ignore[assignment]
    n: int = 0

    def setup(self, context: Any) -> None: ...

    def begin_window(self, window: int, *more: int) -> None: ...

    @classmethod
    def keeps_state(cls, state: str) -> bool:
        return True


def test_overriding_is_no_mistake() -> None:
    assert problems(Good()) == []


class Plain(Operator):
    def __init__(self, path: str) -> None:
        self.path = path


@attrs.define
class Written(Operator):
    path: str

    def __init__(self, folder: str) -> None:
        self.__attrs_init__(folder)  # type: ignore[attr-defined]


@attrs.define
class Fitting(Operator):
    """An __init__ that takes the properties by name is correct."""

    path: str

    def __init__(self, path: str, **more: Any) -> None:
        self.__attrs_init__(path.rstrip("/"), **more)  # type: ignore[attr-defined]


def test_constructors() -> None:
    for cls in (Plain, Written):
        with pytest.raises(ConstructorWritten) as caught:
            cls("folder")
        assert line("def __init__", cls) in str(caught.value)
        assert "an unexpected keyword argument" in str(caught.value) or "missing a required argument" in str(caught.value)
    assert problems(Fitting("a/")) == []


@attrs.define
class Arity(Operator):
    input = InputPort[str]()
    other = InputPort[str]()

    def setup(self) -> None: ...  # type: ignore[override]

    def begin_window(self) -> None: ...  # type: ignore[override]

    def end_window(self, window: int) -> None: ...  # type: ignore[override]

    def partition_key(self) -> Any: ...  # type: ignore[override]

    @input.process
    def each(self) -> None: ...

    @other.batch
    def batch(self, batch: Any, more: Any) -> None: ...

    @input.combine
    def combine(self, one: Any) -> Any: ...


def test_methods_of_the_wrong_arity() -> None:
    from dagflow.model.graph.class_checks import handler_signatures, lifecycle_signatures

    found = [*lifecycle_signatures(Arity()), *handler_signatures(Arity())]
    assert sorted((each.method, each.called) for each in found if isinstance(each, SignatureWrong)) == [
        ("batch", "self, batch"),
        ("begin_window", "self, window"),
        ("combine", "self, one, other"),
        ("each", "self, record"),
        ("end_window", "self"),
        ("partition_key", "self, port"),
        ("setup", "self, context"),
    ]
    assert line("def setup", Arity) in str(next(each for each in found if each.method == "setup"))  # type: ignore[attr-defined]
    assert "help: def setup(self, context)" in str(next(each for each in found if each.method == "setup"))  # type: ignore[attr-defined]


@attrs.define
class NeverRun(Operator):
    input = InputPort[str]()
    output = OutputPort[str]()

    async def setup(self, context: Any) -> None:  # type: ignore[override]
        raise NotImplementedError

    def end_window(self) -> Any:
        yield self.output.emit("lost")

    @input.process
    async def each(self, record: str) -> Any:
        yield record


@attrs.define
class WithoutSelf(Operator):
    input = InputPort[str]()
    other = InputPort[str]()

    @input.process
    @staticmethod
    def each(record: str) -> None:
        raise NotImplementedError

    @other.process
    @classmethod
    def every(cls, record: str) -> None:
        raise NotImplementedError


def test_methods_that_nothing_would_run() -> None:
    found = [str(each) for each in problems(NeverRun()) if isinstance(each, ClassWrong)]
    assert len(found) == 3
    assert any(
        "setup() yields or awaits: nothing would run it" in each and line("async def setup", NeverRun) in each for each in found
    )
    assert any("end_window() yields or awaits" in each for each in found)
    assert any("the handler each() of port 'input' yields or awaits" in each for each in found)


def test_handlers_are_methods_of_the_instance() -> None:
    found = [str(each) for each in problems(WithoutSelf()) if isinstance(each, ClassWrong)]
    assert len(found) == 2
    assert any("the handler each() is a staticmethod" in each and "remove @staticmethod" in each for each in found)
    assert any("the handler every() is a classmethod" in each for each in found)


@attrs.define
class Contradicting(Operator, Generic[T]):
    input = InputPort[str]()
    other = InputPort[list[T]]()

    @input.process
    def each(self, record: int) -> None: ...

    @input.stream
    def many(self, records: Iterator[int]) -> None: ...

    @input.batch
    def batch(self, batch: pa.Table) -> None: ...

    @other.process
    def one(self, record: str) -> None: ...


@attrs.define
class Agreeing(Operator, Generic[T]):
    input = InputPort[str]()
    other = InputPort[list[T]]()

    @input.process
    def each(self, record: str | int) -> None: ...

    @input.stream
    def many(self, records: Iterator[object]) -> None: ...

    @input.batch
    def batch(self, batch: Any) -> None: ...

    @other.process
    def one(self, record: list[T]) -> None: ...

    @other.stream
    def some(self, records) -> None:  # type: ignore[no-untyped-def]
        ...


def test_annotations_of_handlers_that_contradict_their_ports() -> None:
    found = problems(Contradicting())
    assert [(type(each), each.method, each.difference) for each in found] == [
        (HandlerTypeWrong, "each", "str is not int"),
        (HandlerTypeWrong, "many", "str is not int"),
        (HandlerTypeWrong, "batch", "RecordBatch is not Table"),
        (HandlerTypeWrong, "one", "list[Any] is not str"),
    ]
    assert "test_class_checks.py:" in str(found[0])
    assert problems(Agreeing()) == []


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(operators.__path__, "operators."):
        yield import_module(found.name)


def test_the_library_means_what_it_says() -> None:
    classes = [cls for module in modules() for cls in vars(module).values() if inspect.isclass(cls) and issubclass(cls, Operator)]
    assert len(set(classes)) > 20
    for cls in set(classes):
        base = InputOperator if issubclass(cls, InputOperator) else Operator
        assert [*handlers_twice(cls), *names_taken(cls, base), *handler_types(cls)] == []


@attrs.define
class Wrong(Module):
    input = ProxyInputPort[str]()

    def populate_dag(self) -> None: ...  # type: ignore[override]


def told_by(fill: Callable[[DAG], object]) -> list[str]:
    dag = DAG()
    fill(dag)
    return [str(each) for each in expand(dag).problems]


def test_modules_are_held_to_the_same() -> None:
    (found,) = told_by(lambda dag: dag.add_module("m", Wrong()))
    assert "populate_dag() has the wrong parameters" in found
    assert "help: def populate_dag(self, dag)" in found


def test_a_class_where_an_object_belongs() -> None:
    def fill(dag: DAG) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=["/tmp"]))
        dag.add_operator("show", Console)  # type: ignore[type-var]
        dag.add_module("wrong", Wrong)  # type: ignore[type-var]
        dag.add_stream("one", files.files_metadata_output, Console.input)
        dag.add_stream("other", files.blocks_metadata_output, Console)  # type: ignore[arg-type]

    found = [text.partition("\n")[::2] for text in told_by(fill)]
    assert [(first.partition(" (tests")[0], rest) for first, rest in found] == [
        (
            "class Console was given where an operator (named 'show') is expected",
            "  help: make an object of the class: Console(…)",
        ),
        ("class Wrong was given where a module (named 'wrong') is expected", "  help: make an object of the class: Wrong(…)"),
        (
            "port 'input' of a class was given where an input port (stream 'one') is expected",
            "  help: name the port of the operator that dag.add_operator() has returned: operator.input",
        ),
        (
            "class Console was given where an input port (stream 'other') is expected",
            "  help: make an object of the class: Console(…)",
        ),
    ]
    (partitioner,) = problems(Good2(), partitioner=StatelessPartitioner)
    assert type(partitioner) is NotAPartitioner
    assert "is the class StatelessPartitioner, not an object of it" in str(partitioner)
    assert NotAnOperator.code == "DF003"


@attrs.define
class Good2(Operator):
    input = InputPort[str]()

    @input.process
    def each(self, record: str) -> None: ...


def test_a_port_that_is_not_there_lists_those_that_are() -> None:
    with pytest.raises(AttributeError) as caught:
        Map(str.strip).outptu  # type: ignore[attr-defined]  # noqa: B018
    assert str(caught.value) == "'Map' object has no attribute 'outptu'. Did you mean 'output'? Its ports: errors, input, output"
    with pytest.raises(AttributeError, match=r"has no attribute 'x'\. Its ports: input"):
        Wrong().x  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(Map(str.strip), "_anything")
