"""operator.NAME.PROPERTY and operator.NAME.port.PORT.ATTRIBUTE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.config import Bytes, Seconds, Secret, Setting, apply_operators, apply_ports, apply_to_operator, read_layers
from dagflow.errors import (
    BadValue,
    ConfigError,
    ConfigErrors,
    UnknownOperatorName,
    UnknownPortAttribute,
    UnknownPortName,
    UnknownProperty,
)


@attrs.define
class Context:
    encoding: str = "utf-8"


@attrs.define
class FixedContext(Context):
    length: int = attrs.field(default=100, validator=attrs.validators.ge(1))


@attrs.frozen
class FrozenContext(Context):
    size: Bytes = 1


@attrs.define(slots=False, eq=False)
class Base:
    on_error: Literal["fail", "skip", "route"] = attrs.field(default="fail", kw_only=True)


@attrs.define
class Reader(Base):
    reader_context: Context = attrs.field(factory=FixedContext)
    max_readers: int = attrs.field(default=16, validator=attrs.validators.ge(1))
    names: list[str] = attrs.field(factory=list)
    every: Seconds | None = None
    options: dict[str, int] = attrs.field(factory=dict)
    maybe: FixedContext | None = None


@attrs.define
class Keep(Base):
    predicate: Callable[[str], bool] = bool
    prefix: str = attrs.field(default=".", converter=str.strip)
    password: Secret = ""


def dag() -> dict[str, Any]:
    return {"reader": Reader(), "keep": Keep()}


def apply(operators: dict[str, Any], *definitions: str, **layers: Any) -> Any:
    return apply_operators(operators, read_layers(definitions=definitions, **layers))


def errors(*definitions: str, operators: dict[str, Any] | None = None) -> list[ConfigError]:
    try:
        apply(operators or dag(), *definitions)
    except ConfigErrors as error:
        return list(error.errors)
    except ConfigError as error:
        return [error]
    return []


def test_properties_are_set_with_their_types() -> None:
    operators = dag()
    applied = apply(
        operators,
        "operator.reader.max_readers=8",
        "operator.reader.names=a",
        "operator.reader.every=500ms",
        "operator.reader.on_error=skip",
        "operator.keep.prefix= # ",
    )
    reader = operators["reader"]
    assert (reader.max_readers, reader.names, reader.every, reader.on_error) == (8, ["a"], 0.5, "skip")
    assert operators["keep"].prefix == "#"
    assert {path: (s.value, s.origin) for path, s in applied["reader"].items()} == {
        "max_readers": (8, "-D"),
        "names": (["a"], "-D"),
        "every": (0.5, "-D"),
        "on_error": ("skip", "-D"),
    }
    assert applied["keep"]["prefix"].value == "#"  # as the converter left it


def test_parts_of_objects_are_replaced_never_changed() -> None:
    shared = FixedContext()
    operators = {"one": Reader(shared), "two": Reader(shared), "three": Reader(FrozenContext())}
    apply(
        operators, "operator.one.reader_context.length=4", "operator.three.reader_context={size = '1KiB', encoding = 'latin-1'}"
    )
    assert operators["one"].reader_context == FixedContext(length=4)
    assert operators["two"].reader_context is shared
    assert shared.length == 100
    assert operators["three"].reader_context == FrozenContext("latin-1", 1024)


def test_objects_that_are_not_there_are_made() -> None:
    operators = dag()
    apply(operators, "operator.reader.maybe.length=4", "operator.reader.options.a=1", "operator.reader.options={b = 2}")
    assert operators["reader"].maybe == FixedContext(length=4)
    assert operators["reader"].options == {"a": 1, "b": 2}


def test_a_table_sets_several_properties() -> None:
    operators = dag()
    apply(operators, "operator.reader={max_readers = 3, reader_context.length = 5}")
    assert (operators["reader"].max_readers, operators["reader"].reader_context.length) == (3, 5)


def test_the_name_of_an_operator_goes_before_the_star_within_a_layer_only() -> None:
    operators = dag()
    apply(operators, "operator.reader.on_error=skip", "operator.*.on_error=route")
    assert [operator.on_error for operator in operators.values()] == ["skip", "route"]
    operators = dag()
    apply(operators, "operator.*.on_error=route", code={"operator.reader.on_error": "skip"})
    assert [operator.on_error for operator in operators.values()] == ["route", "route"]


LAYERS = ["code", "env", "-D"]
GIVEN = st.lists(st.tuples(st.sampled_from(LAYERS), st.sampled_from(["*", "reader"]), st.integers(1, 99)), max_size=8)


@given(GIVEN)
def test_precedence_of_layers_names_and_order(settings: list[tuple[str, str, int]]) -> None:
    settings = [(layer, name, value) for layer, name, value in settings if (layer, name) != ("env", "*")]
    code, environment, definitions = {}, {}, []
    last = {(layer, name): value for layer, name, value in settings}  # a layer says a thing once
    settings = [(layer, name, last[layer, name]) for layer, name in dict.fromkeys((layer, name) for layer, name, _ in settings)]
    for layer, name, value in settings:
        if layer == "code":
            code[f"operator.{name}.max_readers"] = value
        elif layer == "env":
            environment[f"DAGFLOW_OPERATOR__{name.upper()}__MAX_READERS"] = str(value)
        else:
            definitions.append(f"operator.{name}.max_readers={value}")
    operators = dag()
    applied = apply(operators, *definitions, code=code, environment=environment)
    ranked = sorted(enumerate(settings), key=lambda it: (LAYERS.index(it[1][0]), it[1][1] != "*", it[0]))
    assert operators["reader"].max_readers == (ranked[-1][1][2] if ranked else 16)
    origins = {"env": "env DAGFLOW_OPERATOR__READER__MAX_READERS"}
    if ranked:
        assert applied["reader"]["max_readers"].origin == origins.get(ranked[-1][1][0], ranked[-1][1][0])


def test_the_star_skips_operators_without_the_property() -> None:
    operators = dag()
    apply(operators, "operator.*.max_readers=2", "operator.*.reader_context.length=3")
    assert (operators["reader"].max_readers, operators["reader"].reader_context.length) == (2, 3)
    (error,) = errors("operator.*.max_raeders=2")
    assert isinstance(error, UnknownProperty)
    assert "did you mean `operator.*.max_readers`?" in error.message()
    (error,) = errors("operator.*.on_error=bogus")  # once, though two operators refuse it
    assert isinstance(error, BadValue)


def test_names_of_the_environment() -> None:
    operators = {"My Reader.inner": Reader(), "keep": Keep()}
    applied = apply(operators, environment={"DAGFLOW_OPERATOR__MY READER__INNER__READER_CONTEXT__LENGTH": "4"})
    assert operators["My Reader.inner"].reader_context.length == 4
    assert list(applied["My Reader.inner"]) == ["reader_context.length"]


def test_names_of_operators_in_modules_hold_dots() -> None:
    operators = {"scan": Keep(), "scan.reader": Reader()}
    apply(operators, "operator.scan.reader.max_readers=4", "operator.scan.prefix=x")
    assert operators["scan.reader"].max_readers == 4
    assert operators["scan"].prefix == "x"


def test_all_that_is_wrong_is_reported_together() -> None:
    found = errors(
        "operator.raeder.max_readers=8",
        "operator.reader.max_reader=8",
        "operator.reader.reader_context.lenght=8",
        "operator.reader.max_readers=0",
        "operator.keep.prefix.x=1",
        "operator.reader=3",
        "operator=3",
    )
    assert [type(error) for error in found] == [
        UnknownOperatorName,
        UnknownOperatorName,
        UnknownProperty,
        UnknownProperty,
        UnknownProperty,
        BadValue,
        UnknownProperty,
    ]
    assert "did you mean `operator.reader.max_readers`?" in found[0].message()
    assert "did you mean `operator.reader.reader_context.length`?" in "".join(error.message() for error in found)


def test_secrets_of_operators_do_not_appear() -> None:
    @attrs.define
    class Login(Base):
        password: Secret = attrs.field(default="", validator=attrs.validators.max_len(3))

    (error,) = errors("operator.login.password=hunter2", operators={"login": Login()})
    assert str(error) == "`operator.login.password` cannot be *** (-D)\n  because: the check of this setting refuses it"


def test_one_operator_by_hand() -> None:
    reader = Reader()
    given_properties = {
        "max_readers": Setting("operator.r.max_readers", "8", "-D", is_text=True),
        "reader_context.length": Setting("operator.r.reader_context.length", 4, "app.toml:3"),
    }
    applied = apply_to_operator(reader, given_properties, name="r")
    assert (reader.max_readers, reader.reader_context) == (8, FixedContext(length=4))
    assert {path: (s.value, s.origin) for path, s in applied.items()} == {
        "max_readers": (8, "-D"),
        "reader_context.length": (4, "app.toml:3"),
    }
    with pytest.raises(UnknownProperty):
        apply_to_operator(reader, {"max_reader": Setting("max_reader", "8", "-D", is_text=True)}, name="r")


def test_a_validator_that_breaks_is_not_hidden() -> None:
    def broken(instance: Any, attribute: Any, value: Any) -> None:
        raise KeyError("mine")

    @attrs.define
    class Broken(Base):
        value: int = attrs.field(default=1)

        @value.validator
        def _check(self, attribute: Any, value: int) -> None:
            if value == 2:
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        apply({"broken": Broken()}, "operator.broken.value=2")


PORTS = {"reader": ["blocks", "messages"], "keep": ["input"]}
ATTRIBUTES = {"partition_parallel": bool | None, "memory": Bytes}


def ports(*definitions: str, **layers: Any) -> dict[str, dict[str, dict[str, Any]]]:
    found = apply_ports(PORTS, ATTRIBUTES, read_layers(definitions=definitions, **layers))
    return {o: {p: {a: s.value for a, s in given.items()} for p, given in rest.items()} for o, rest in found.items()}


def test_attributes_of_ports() -> None:
    assert ports("operator.keep.port.input.partition_parallel=true", "operator.keep.prefix=x") == {
        "keep": {"input": {"partition_parallel": True}}
    }
    assert ports(
        "operator.reader.port.*.memory=1KiB", "operator.*.port.messages.memory=2KiB", "operator.*.port.*.memory=3KiB"
    ) == {
        "reader": {"blocks": {"memory": 1024}, "messages": {"memory": 1024}},
        "keep": {"input": {"memory": 3072}},
    }
    assert ports("operator.keep.port.input.memory=5", "operator.keep.port.*.memory=6")["keep"] == {"input": {"memory": 5}}
    assert ports("operator.*.port.*.memory=1KiB", environment={"DAGFLOW_OPERATOR__KEEP__PORT__INPUT__MEMORY": "7"})["keep"] == {
        "input": {"memory": 1024}
    }


def test_attributes_of_ports_that_are_wrong() -> None:
    with pytest.raises(ConfigErrors) as caught:
        ports(
            "operator.reader.port.block.memory=1",
            "operator.reader.port.blocks.memroy=1",
            "operator.*.port.mesages.memory=1",
            "operator.*.port.*.memory=much",
        )
    assert [type(error) for error in caught.value.errors] == [UnknownPortName, UnknownPortAttribute, UnknownPortName, BadValue]


def test_properties_may_be_called_port() -> None:
    @attrs.define
    class Source(Base):
        port: int = 1

    operators = {"source": Source()}
    apply(operators, "operator.source.port=9999")
    assert operators["source"].port == 9999
