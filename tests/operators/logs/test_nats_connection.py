"""Servers of NATS: addresses without passwords, properties that cannot be, and answers of busy servers, by a double."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nats", reason="nats-py is not installed: pip install 'dagflow[nats]'")

import nats.errors

from dagflow import DAG
from dagflow.model.graph.expand import expand
from operators import NatsBlockReader, NatsInput, NatsScanInput, NatsSplitterInput, NatsWriter
from operators.logs.errors import LogRefused, LogUnavailable, TopicReplaced
from operators.logs.nats.connection import JetStream, NatsServer
from operators.logs.nats.streams import NatsLog


@pytest.mark.parametrize(
    "url",
    [
        "nats://ada:pa/ss@h:4222",
        "nats://ada:pa,ss@h:4222",
        "nats://ada:12,ss@h:4222",
        "nats://ada:p,a,ss@h:4222",
        "nats://ada:pa#ss@h:4222",
        "nats://ada:pa?ss@h:4222",
        "nats://ada:12/ss@h:4222",
    ],
)
def test_no_part_of_a_password_is_shown(url: str) -> None:
    server = NatsServer(url)
    assert server.place == "nats://h:4222"
    with pytest.raises(ValueError, match=r"servers: URL 1 of .* cannot be read") as refused:
        NatsBlockReader(servers=url).check()
    assert not any(part in str(refused.value).replace("password", "") for part in ("pa", "ss", "ada", "12"))


@pytest.mark.parametrize(
    "url", ["a", "nats://ada:p@ss@a:4222, tls://b", "nats://t0ken@[::1]:4222", "wss://a/nats", "a:1,b:2", "nats://a/"]
)
def test_servers_that_can_be(url: str) -> None:
    NatsBlockReader(servers=url).check()
    assert not {"ada", "t0ken"} & set(NatsServer(url).place)


@pytest.mark.parametrize("stream", ["orders.>", "orders*", "a b", "a.b"])
def test_a_name_that_no_stream_has(stream: str) -> None:
    with pytest.raises(ValueError, match="filters of subjects go into subjects"):
        NatsSplitterInput(servers="nats://a", topics=stream).check()
    NatsSplitterInput(servers="nats://a", topics=["ORDERS", "^ORDERS.*"], subjects=["orders.>"]).check()


def test_credentials_need_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = NatsBlockReader(servers="nats://a", credentials="ada.creds")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="needs the package nkeys"):
        operator.check()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    operator.check()


Answer = dict[str, Any] | Exception


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., JetStream]:
    """Make a connection to a double, whose answers follow each other. The last one stays."""

    def connected(*answers: Answer, timeout: float = 0.05) -> JetStream:
        left = list(answers)

        async def request(*_: Any, **__: Any) -> Any:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return SimpleNamespace(data=json.dumps(answer).encode())

        client = SimpleNamespace(request=request)
        monkeypatch.setattr(JetStream, "_run", lambda self, work: asyncio.run(work(client)))
        monkeypatch.setattr("operators.logs.nats.connection._PAUSE", 0.001)
        return JetStream(NatsServer("nats://a", timeout=timeout))

    return connected


def busy(err_code: int = 10008) -> Answer:
    return {"error": {"code": 503, "err_code": err_code, "description": "temporarily unavailable"}}


def test_a_busy_server_is_asked_again(answered: Callable[..., JetStream]) -> None:
    jetstream = answered(busy(), nats.errors.NoRespondersError(), {"state": 1}, timeout=30)
    assert jetstream.request("STREAM.INFO.a", "asking") == {"state": 1}


@pytest.mark.parametrize("answer", [busy(), nats.errors.NoRespondersError()])
def test_a_server_that_stays_busy_is_not_available(answered: Callable[..., JetStream], answer: Answer) -> None:
    with pytest.raises(LogUnavailable, match=r"temporarily unavailable|does not answer: start the server with --jetstream"):
        answered(answer).request("STREAM.INFO.a", "asking")


@pytest.mark.parametrize("answer", [busy(10039), {"error": {"code": 400, "err_code": 10003, "description": "bad request"}}])
def test_other_errors_are_refusals(answered: Callable[..., JetStream], answer: Answer) -> None:
    with pytest.raises(LogRefused):
        answered(answer, timeout=30).request("STREAM.INFO.a", "asking")


@pytest.mark.parametrize("answer", [{"created": "later", "state": {"first_seq": 1}}, {"error": {"code": 404, "err_code": 10059}}])
def test_a_stream_that_is_another_one_than_was_planned(
    answered: Callable[..., JetStream], answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    jetstream = answered(answer)
    monkeypatch.setattr("operators.logs.nats.streams.JetStream", lambda server: jetstream)
    stream = NatsLog(jetstream.server).connect().open("ORDERS", 0, 1, "then")
    with pytest.raises(TopicReplaced, match=r"ORDERS\[0\] is not the log .* deleted"):
        stream.read(2)


def test_the_writer_checks_servers_as_the_source_does() -> None:
    with pytest.raises(ValueError, match="URL 1 of 1 cannot be read"):
        NatsWriter("nats://ada:se/cret@a", "ORDERS", "orders").check()


@pytest.mark.parametrize("module", [NatsInput, NatsScanInput])
def test_modules_pass_properties_on(module: Any) -> None:
    expected = {"on_lost": "skip", "timeout": 5.0, "max_readers": 3}
    dag = DAG("test")
    made = module("nats://a", topics="ORDERS", event_time="value.at", out_of_orderness=7, wait=True, **expected)
    dag.add_module("orders", made)
    operators: Any = {name: node.operator for name, node in expand(dag).operators.items()}
    splitter, reader = operators["orders.splitter"], operators["orders.reader"]
    assert {name: getattr(reader, name) for name in expected} == expected
    assert (splitter.on_lost, splitter.timeout, splitter.wait) == ("skip", 5.0, True)
    assert (splitter.event_time, splitter.out_of_orderness) == ("value.at", 7.0)


def test_the_module_has_the_port_errors_of_its_reader() -> None:
    from dagflow import plan
    from operators import Console

    def populate_dag(dag: Any, conf: Any) -> None:
        orders = dag.add_module("orders", NatsInput("nats://a", topics="ORDERS"))
        dag.add_stream("errors", orders.errors, dag.add_operator("shown", Console()).input)
        dag.add_stream("rows", orders.batches, dag.add_operator("rows", Console()).input)

    assert "orders.reader.errors" in str(plan(populate_dag, {}))
