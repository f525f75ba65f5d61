"""The client of a topic: which errors stand for which, without a cluster."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: pip install 'dagflow[test]'")

from confluent_kafka import KafkaError, KafkaException

from dagflow.errors import LogNotWritable, LogUnavailable, MessageRefused
from operators import KafkaWriter
from operators.logs.kafka.settings import identity_of
from operators.sinks.logs import kafka
from operators.sinks.logs.client import Outgoing
from operators.sinks.logs.kafka import KafkaTopic, OpenTopic


def topic(**config: Any) -> KafkaTopic:
    return KafkaTopic("127.0.0.1:1", "sales", {"log_level": 0, **config}, timeout=0.2, max_message_bytes=1_000)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"sasl.passwort": "secret"}, 'No such configuration property: "sasl.passwort"'),
        ({"linger.ms": "soon"}, "Invalid value for configuration property"),
        ({"security.protocol": "ssl", "ssl.key.pem": "secret"}, "not in PEM format"),
    ],
)
def test_settings_that_the_client_does_not_take_are_not_transient(config: dict[str, str], words: str) -> None:
    with pytest.raises(LogNotWritable, match=words) as refused, topic(**config).connected("looking") as log:
        log.state()
    assert "help: correct the settings in config" in str(refused.value)
    assert "secret" not in str(refused.value)
    assert not refused.value.is_transient


def test_a_message_that_the_client_refuses_at_once_names_the_window() -> None:
    rows: Any = {"partitions": [0], "sequences": [0], "subjects": [None], "keys": [None], "headers": [None], "times": [None]}
    with pytest.raises(MessageRefused, match=r"of window 7: .*size too large"), topic().connected("publishing") as log:
        log.send("shop-1f/sales", 7, (0,), [Outgoing(**rows, values=[b"x" * 10_000])])


def test_what_was_noticed_earlier_is_not_the_cause_of_a_timeout() -> None:
    servers = topic()
    kafka._clients(servers).notice(KafkaError(KafkaError._AUTHENTICATION, "an hour ago"))
    with pytest.raises(LogUnavailable) as away, servers.connected("publishing"):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    assert "an hour ago" not in str(away.value)


@attrs.define
class Servers:
    """Clients whose servers answer questions for a description by an error, or by the id of the topic."""

    answers: list[Any]
    asked: int = 0
    describes_from: float = 0.0

    def admin(self) -> Servers:
        return self

    def describe_topics(self, topics: Any, **options: Any) -> dict[str, Any]:
        return {"sales": self}

    def result(self, timeout: float) -> Any:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return attrs.make_class("Description", ["topic_id"])(answer)


@pytest.mark.parametrize(
    ("answer", "is_asked_again"),
    [
        (KafkaException(KafkaError(KafkaError._UNSUPPORTED_FEATURE)), False),
        (KafkaException(KafkaError(KafkaError.UNSUPPORTED_VERSION)), False),
        (KafkaException(KafkaError(KafkaError._TIMED_OUT)), True),
        (TimeoutError(), True),
    ],
)
def test_servers_that_did_not_describe_a_topic_once_are_asked_again(
    answer: Exception, is_asked_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(kafka.time, "monotonic", lambda: now[0])
    servers: Any = Servers([answer, "an id"])
    log = OpenTopic(topic(), servers, "publishing")
    assert [identity_of(log._description()) for _ in range(2)] == [None, None]
    assert servers.asked == 1
    now[0] += 1_000
    assert identity_of(log._description()) == ("an id" if is_asked_again else None)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"topic": "bad topic"}, r"topic is 'bad topic': a topic has a name of at most 249 letters"),
        ({"topic": ""}, "topic is empty"),
        ({"key": ""}, "key is '', and must be the name of a column"),
        ({"value": ""}, "value is '', and must be"),
        ({"headers": {"kind": ""}}, r"headers\['kind'\] is ''"),
        ({"config": {"debug": ["broker"]}}, r"config\['debug'\] is a list, and must be text, a number or a function"),
    ],
)
def test_properties_are_checked(properties: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        KafkaWriter(**{"bootstrap_servers": "localhost:9092", "topic": "sales", **properties}).check()
