"""KafkaClient on an admin and consumers that play librdkafka: topics that are missing, replaced, or have no ids."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from dagflow.testing import OperatorTask

kafka = pytest.importorskip("confluent_kafka")

from operators.logs.blocks import PartitionPosition  # noqa: E402
from operators.logs.errors import LogRefused, LogUnavailable, TopicReplaced  # noqa: E402
from operators.logs.kafka import client as client_module  # noqa: E402
from operators.logs.kafka.client import KafkaClient, KafkaLog  # noqa: E402
from operators.logs.kafka.operators import KafkaSplitterInput  # noqa: E402
from operators.logs.protocol import LogPartition, Topics  # noqa: E402

ID, OTHER_ID, NO_ID = "pXw2b0rIQoGVbTcb3mLf9A", "0b3mLf9ApXw2rIQoGVbTcQ", "A" * 22
_servers = itertools.count()


def error(name: str) -> Any:
    return kafka.KafkaError(getattr(kafka.KafkaError, name))


def futures(answers: dict[Any, Any]) -> dict[Any, Future[Any]]:
    """Return a future for each answer. A string that names an error of Kafka is raised."""
    made: dict[Any, Future[Any]] = {key: Future() for key in answers}
    for key, answer in answers.items():
        if isinstance(answer, str):
            made[key].set_exception(kafka.KafkaException(error(answer)))
        else:
            made[key].set_result(answer)
    return made


@attrs.define
class Admin:
    """An admin of one topic. `ids`, `ends`: the answers to come, of which the last one stays; names of errors are raised."""

    ids: list[str] = attrs.field(factory=lambda: [ID])
    ends: list[Any] = attrs.field(factory=lambda: [10])
    listed: list[int] = attrs.field(factory=lambda: [1])
    described: int = 0

    def poll(self, timeout: float) -> None:
        pass

    def list_topics(self, timeout: float) -> Any:
        there = {"events": SimpleNamespace(error=None, partitions={0: None})} if self._next(self.listed) else {}
        return SimpleNamespace(topics=there, controller_id=1, brokers={1: None})

    def list_offsets(self, asked: dict[Any, Any], **settings: Any) -> dict[Any, Future[Any]]:
        is_latest = any(spec._value == kafka.admin.OffsetSpec.latest()._value for spec in asked.values())
        end = self._next(self.ends) if is_latest else 0
        return futures({place: end if isinstance(end, str) else SimpleNamespace(offset=end) for place in asked})

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[Any, Future[Any]]:
        self.described += 1
        told = self._next(self.ids)
        is_error = hasattr(kafka.KafkaError, told)
        return futures({name: told if is_error else SimpleNamespace(topic_id=told) for name in topics.topic_names})

    def _next(self, answers: list[Any]) -> Any:
        return answers.pop(0) if len(answers) > 1 else answers[0]


@attrs.define
class Consumer:
    """A consumer, and what it was told."""

    settings: dict[str, Any] = attrs.field(factory=dict)
    answers: list[Any] = attrs.field(factory=list)
    committed: list[Any] = attrs.field(factory=list)
    closed: bool = False

    def assign(self, places: list[Any]) -> None:
        pass

    def commit(self, offsets: list[Any], asynchronous: bool) -> list[Any]:
        self.committed.append([(each.topic, each.partition, each.offset) for each in offsets])
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return [SimpleNamespace(error=answer) for _ in offsets]

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the clock of the client: each look at it, and each sleep, takes a second."""
    now = [0.0]

    def tick() -> float:
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(client_module, "time", SimpleNamespace(monotonic=tick, sleep=lambda seconds: tick()))
    return now


def client(admin: Admin) -> KafkaClient:
    made = KafkaLog(f"kafka-{next(_servers)}:9092").connect()
    made._admin = admin
    made._consumer = Consumer()
    return made


def identities(found: Iterable[LogPartition]) -> list[str | None]:
    return [each.identity for each in found]


EVENTS = Topics(("events",))


@pytest.mark.parametrize("passing", ["_TIMED_OUT", "_TRANSPORT", "NOT_CONTROLLER"])
def test_an_id_that_is_not_told_once_is_asked_for_again(passing: str) -> None:
    looking = client(Admin(ids=[ID, passing, OTHER_ID]))
    assert [identities(looking.partitions(EVENTS)) for _ in range(3)] == [[ID], [None], [OTHER_ID]]


def test_servers_that_are_too_old_for_ids_are_asked_once() -> None:
    admin = Admin(ids=["UNSUPPORTED_VERSION"])
    looking = client(admin)
    assert [identities(looking.partitions(EVENTS)) for _ in range(2)] == [[None], [None]]
    assert admin.described == 1


def test_an_id_of_zero_is_none() -> None:
    assert identities(client(Admin(ids=[NO_ID])).partitions(EVENTS)) == [None]


@pytest.mark.parametrize("missing", [{"listed": [1, 0, 0, 1]}, {"ends": [10, "UNKNOWN_TOPIC_OR_PART", 12]}])
def test_a_partition_that_is_missing_for_a_moment_is_told_as_it_was(missing: dict[str, Any]) -> None:
    looking = client(Admin(**missing))
    ends = [[each.end for each in looking.partitions(EVENTS)] for _ in range(4)]
    assert all(len(each) == 1 for each in ends)
    assert ends[1] == [10]


def test_a_topic_that_stays_missing_is_gone_after_the_timeout(ticks: list[float]) -> None:
    looking = client(Admin(listed=[1, 0]))
    assert len(looking.partitions(EVENTS)) == 1
    assert len(looking.partitions(EVENTS)) == 1
    ticks[0] += 31
    assert looking.partitions(EVENTS) == []


def test_the_first_look_waits_for_offsets_that_are_not_known_yet() -> None:
    assert [each.end for each in client(Admin(ends=["UNKNOWN_TOPIC_OR_PART"] * 3 + [7])).partitions(EVENTS)] == [7]
    assert client(Admin(ends=["UNKNOWN_TOPIC_OR_PART"])).partitions(EVENTS) == []


@pytest.mark.parametrize("answers", [[7], ["UNKNOWN_TOPIC_OR_PART", 7], ["LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PART", 7]])
def test_the_offset_of_a_time_is_never_the_end_because_a_partition_is_missing_for_a_moment(
    answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(self: KafkaClient, places: Any, spec: Any) -> dict[Any, Future[Any]]:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return futures({place: answer if isinstance(answer, str) else SimpleNamespace(offset=answer) for place in places})

    monkeypatch.setattr(KafkaClient, "_ask_offsets", told)
    partitions = [LogPartition("events", 0, first=0, end=20)]
    assert client(Admin()).offsets_at(partitions, 5) == [7]
    answers[:] = ["UNKNOWN_TOPIC_OR_PART"]
    with pytest.raises(LogUnavailable, match=r"events\[0\] is not known now"):
        client(Admin()).offsets_at(partitions, 5)


def test_a_task_reads_the_topic_that_was_planned_and_no_other() -> None:
    admin = Admin(ids=["UNKNOWN_TOPIC_OR_PART", ID, OTHER_ID])
    reading = client(admin)
    for start in (0, 5):
        reading.open("events", 0, start, ID)
    assert admin.described == 2
    with pytest.raises(TopicReplaced, match=r"events\[0\] is not the log that was read so far: it was deleted and created again"):
        client(Admin(ids=[OTHER_ID])).open("events", 0, 0, ID)
    with pytest.raises(TopicReplaced, match="the log no longer has it"):
        client(Admin(ids=["UNKNOWN_TOPIC_OR_PART"])).open("events", 0, 0, ID)
    with pytest.raises(LogUnavailable, match=r"opening events\[0\]"):
        client(Admin(ids=["_TIMED_OUT"])).open("events", 0, 0, ID)
    with pytest.raises(LogRefused, match=r"opening events\[0\]"):
        client(Admin(ids=["TOPIC_AUTHORIZATION_FAILED"])).open("events", 0, 0, ID)


@pytest.mark.parametrize(("planned", "told"), [(None, OTHER_ID), (ID, NO_ID)])
def test_where_there_are_no_ids_nothing_is_checked(planned: str | None, told: str) -> None:
    client(Admin(ids=[told])).open("events", 0, 0, planned)


def test_settings_that_the_client_refuses_end_a_task() -> None:
    connecting = KafkaLog("kafka:9092", {"no.such.setting": 1}).connect()
    with pytest.raises(LogRefused, match=r"connecting: No such configuration property"):
        connecting.open("events", 0, 0, None)


def test_a_group_has_one_consumer_and_its_problems_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    denied = error("TOPIC_AUTHORIZATION_FAILED")
    consumers: list[Consumer] = []

    def consumer(settings: dict[str, Any]) -> Consumer:
        consumers.append(Consumer(settings, [kafka.KafkaException(error("GROUP_AUTHORIZATION_FAILED")), denied, None]))
        return consumers[-1]

    monkeypatch.setattr(kafka, "Consumer", consumer)
    committing = KafkaLog("kafka:9092").connect()
    problems = [committing.commit("watched", [("events", 0, offset)]) for offset in range(3)]
    assert [problem is None for problem in problems] == [False, False, True]
    assert "authorization" in str(problems[0])
    committing.close()
    [one] = consumers
    assert (one.settings["group.id"], one.closed) == ("watched", True)
    assert one.committed == [[("events", 0, offset)] for offset in range(3)]


def test_positions_that_a_group_does_not_take_are_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(KafkaClient, "commit", lambda self, group, offsets: "not allowed")
    with OperatorTask(KafkaSplitterInput("kafka:9092", "events", commit_group="watched")) as task:
        monkeypatch.setattr(type(task.context), "warn", lambda self, text: warnings.append(text))
        operator: Any = task.operator
        for window in (1, 2):
            operator._planned[window] = {"events[0]": PartitionPosition("events", 0, 7)}
            operator.committed(window)
    assert warnings == ["positions are not written to the consumer group 'watched': not allowed"]
