"""The forms that classes of modules may have."""

from __future__ import annotations

import attrs
import pytest

from dagflow import InputPort, Module, Operator, ProxyInputPort, ProxyOutputPort
from dagflow.errors import ClassWrong


def test_a_module_has_proxy_ports_only() -> None:
    with pytest.raises(ClassWrong, match=r"write input = ProxyInputPort\[…\]\(\)"):

        class Wrong(Module):
            input = InputPort[str]()


def test_an_operator_has_no_proxy_ports() -> None:
    with pytest.raises(ClassWrong, match=r"write output = OutputPort\[…\]\(\), or derive the class from Module"):

        class Wrong(Operator):
            output = ProxyOutputPort[str]()


def test_a_module_handles_nothing() -> None:
    with pytest.raises(ClassWrong, match=r"each\(\) is marked as a handler"):

        class Wrong(Module):
            input = ProxyInputPort[str]()

            @input.process
            def each(self, record: str) -> None: ...


def test_an_annotated_port_and_a_forgotten_decorator_are_told() -> None:
    with pytest.raises(ClassWrong, match="port 'input' is annotated"):

        class Annotated(Module):
            input: ProxyInputPort[str] = ProxyInputPort[str]()

    class Bare(Module):
        least: int = 3

    with pytest.raises(ClassWrong, match=r"write @attrs\.define above class Bare"):
        Bare()


def test_ports_are_those_of_the_instance() -> None:
    @attrs.define
    class Two(Module):
        output = ProxyOutputPort[str]()

    one, other = Two(), Two()
    assert one.output is not other.output
    assert one.output is one.output
    assert one.output.operator is one
