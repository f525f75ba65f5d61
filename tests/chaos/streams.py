"""Applications that read a log, and brokers that fail: JetStream on a disk, which is killed, and a Kafka cluster with faults.

Messages are produced past dagflow, a part before each of the first launches. The judge reads what a stream has by its own client.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from apps.clickstream import sample
from apps.clickstream.sample import create_topic
from tests.chaos import oracle
from tests.chaos.cases import OUTPUT, Application, Sink
from tests.logs.any_log import with_jetstream
from tests.logs.brokers import NatsServer
from tests.logs.mock_cluster import MockCluster
from tests.logs.relay import Relay

BLOCK, BLOCKS = 10, 4
"""The messages of a block, and the blocks of a window."""
DELIVERIES = 4
BROKERS = PARTITIONS = 3

Runs = Callable[[], bool]
_SMALL = {"operator.source.splitter.block_records": str(BLOCK), "operator.source.splitter.window_blocks": str(BLOCKS)}


def _messages(count: int) -> list[bytes]:
    """All messages, each another one. Some begin with a dot."""
    rng = random.Random(7)
    return [f"{'.' * (rng.random() < 0.3)}{number} {'x' * rng.randrange(80)}".encode() for number in range(count)]


def _application(folder: Path, log: str, messages: list[bytes], read: Callable[[str], list[bytes]], **more: Any) -> Application:
    """Return the application; `read` returns all that is published to a log of that name."""
    kept = Counter(each for each in messages if not each.startswith(b"."))

    def wrong(output: Path, is_last: bool) -> Iterator[str]:
        found = Counter(read(f"{output.name}-out"))
        if found - kept or (is_last and kept - found):
            yield f"what was published differs: {oracle.difference(found, kept)}"
        left = sorted(path.name for path in (output / "_dagflow" / "staged").glob("*"))
        if is_last and (len(left) != 1 or not left[0].endswith(".begun")):
            yield f"left over: {left}"  # the newest note of a sink stays

    names = {"log": log, "source": f"{OUTPUT}-in", "target": f"{OUTPUT}-out", "output": OUTPUT}
    return Application(
        f"streamed-{log}",
        folder,
        {**names, **_SMALL, **more.pop("settings")},
        (Sink(oracle.lines, kept),),
        len(messages) // (BLOCK * BLOCKS),
        Path(__file__).parent / "streamed",
        wrong=wrong,
        **more,
    )


def _part(messages: list[bytes], number: int) -> list[bytes]:
    """The messages that are produced before the launch of a number, from 1."""
    before, behind = (min(each, DELIVERIES) * len(messages) // DELIVERIES for each in (number - 1, number))
    return messages[before:behind]


# -------------------------------------------------------------------------------------------------------------- JetStream


def stream(server: NatsServer, folder: Path, count: int = 800) -> Application:
    """From one stream to another, and to files. Both are on one server, which is killed, or stands still."""
    messages = _messages(count)

    def deliver(output: str, number: int) -> bool:
        server.wait()
        with_jetstream(server.url, lambda client: _publish(client, output, _part(messages, number)))
        return number >= DELIVERIES

    def read(name: str) -> list[bytes]:
        server.wait()
        return with_jetstream(server.url, lambda client: _values(client, name))

    def killed(output: str, runs: Runs, rng: random.Random) -> bool:
        server.wait()
        server.kill()
        server.start(after=rng.uniform(0, 1.5))  # what is killed next may be killed while it is away
        return True

    def paused(output: str, runs: Runs, rng: random.Random) -> bool:
        server.wait()
        with server.paused():
            time.sleep(rng.uniform(0, 6))  # clients wait up to 5 s for an answer
        return True

    return _application(
        folder,
        "nats",
        messages,
        read,
        settings={"servers": server.url, "target_servers": server.url},
        deliver=deliver,
        faults={"broker": killed, "broker_pause": paused},
    )


async def _publish(client: Any, output: str, messages: Iterable[bytes]) -> None:
    """Publish messages one after the other, to new streams if need be."""
    for name in (f"{output}-in", f"{output}-out"):
        await client.add_stream(name=name, subjects=[name])
    for message in messages:
        await client.publish(f"{output}-in", message)


async def _values(client: Any, name: str) -> list[bytes]:
    info = await client.stream_info(name)
    if not info.state.messages:
        return []
    subscription = await client.subscribe(name, stream=name, ordered_consumer=True)
    return [(await subscription.next_msg(timeout=60)).data for _ in range(info.state.messages)]


# ------------------------------------------------------------------------------------------------------------------ Kafka


def topic(servers: MockCluster, target: Relay, folder: Path, count: int = 800) -> Application:
    """From a topic of one cluster to that of another, and to files.

    Brokers of the first go down and come up, partitions get other leaders, requests fail and take long. Connections to the other,
    which is behind a relay, are cut.
    """
    messages, target_address = _messages(count), f"127.0.0.1:{target.port}"

    def deliver(output: str, number: int) -> bool:
        name = f"{output}-in"
        if number == 1:
            servers.create(name, PARTITIONS)
            create_topic(target_address, f"{output}-out")
        _produce(servers, name, _part(messages, number))
        return number >= DELIVERIES

    def down(output: str, runs: Runs, rng: random.Random) -> bool:
        brokers = rng.sample(range(1, BROKERS + 1), rng.choice((1, 1, BROKERS)))
        for broker in brokers:
            servers.down(broker)
        time.sleep(rng.uniform(0, 2))
        for broker in brokers:
            servers.up(broker)
        return True

    def moved(output: str, runs: Runs, rng: random.Random) -> bool:
        for partition in range(PARTITIONS):
            servers.move(f"{output}-in", partition, rng.randrange(BROKERS) + 1)
        return True

    def failed(output: str, runs: Runs, rng: random.Random) -> bool:
        from confluent_kafka import KafkaError

        errors = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REQUEST_TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE, 0)
        for api in ("Fetch", "ListOffsets"):
            servers.fail(api, *rng.choices(errors, k=rng.randrange(1, 6)))  # type: ignore[arg-type]  # one of the names
        return True

    def slow(output: str, runs: Runs, rng: random.Random) -> bool:
        broker = rng.randrange(BROKERS) + 1
        servers.delay(broker, rng.randrange(50, 1000))
        time.sleep(rng.uniform(0, 2))
        servers.delay(broker, 0)
        return True

    def cut(output: str, runs: Runs, rng: random.Random) -> bool:
        deadline = time.monotonic() + 3
        while not (has_hit := target.cut() > 0) and runs() and time.monotonic() < deadline:
            time.sleep(0.002)
        return has_hit

    def read(name: str) -> list[bytes]:
        return _read(target_address, name)

    faults = {"broker": down, "leaders": moved, "requests": failed, "broker_slow": slow, "cut": cut}
    settings = {"servers": servers.bootstrap, "target_servers": target_address}
    return _application(folder, "kafka", messages, read, settings=settings, deliver=deliver, faults=faults)


def _produce(servers: MockCluster, name: str, messages: Iterable[bytes]) -> None:
    """Produce messages. Requests that a fault has left to fail have no part in this."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers.bootstrap, "enable.idempotence": True, "log_level": 0})
    for number, message in enumerate(messages):
        producer.produce(name, message, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def _read(address: str, name: str) -> list[bytes]:
    """Read a topic, as a consumer that knows nothing of dagflow."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "judge", "enable.partition.eof": True, "log_level": 0})
    consumer.assign([TopicPartition(name, number, OFFSET_BEGINNING) for number in range(sample.PARTITIONS)])
    found: list[bytes] = []
    ended: set[int | None] = set()
    message: Any  # its type allows for messages without a value
    while len(ended) < sample.PARTITIONS:
        for message in consumer.consume(1_000, 1):
            if message.error() is None:
                found.append(message.value())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    return found
