"""The same work without dagflow: a bare loop of confluent-kafka, and quixstreams in a Python of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from benchmarks.logs.messages import Topic, is_wanted

CHUNK = 10_000


def bare(topic: Topic, output: Path) -> None:
    """One process, one consumer, one file; no commit, no second try."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    output.mkdir()
    config = {"bootstrap.servers": topic.servers, "group.id": "bare", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({**config, "fetch.wait.max.ms": 50, "fetch.queue.backoff.ms": 10})  # as ours has them
    consumer.assign([TopicPartition(topic.name, number, OFFSET_BEGINNING) for number in range(topic.partitions)])
    ended = 0
    message: Any  # its type allows for messages without a value
    with (output / "part-0").open("wb") as file:
        while ended < topic.partitions:
            values = []
            for message in consumer.consume(CHUNK, 0.1):
                if message.error() is not None:
                    ended += 1
                elif is_wanted(value := message.value()):
                    values.append(value)
            if values:
                file.write(b"\n".join(values) + b"\n")
    consumer.close()


def publish(source: Path, topic: Topic) -> None:
    """One idempotent producer of all lines of a file; no second try."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": topic.servers, "enable.idempotence": True, "log_level": 0})
    with source.open("rb") as lines:
        for line in lines:
            while True:
                try:
                    producer.produce(topic.name, line[:-1])
                    break
                except BufferError:
                    producer.poll(0.1)
    producer.flush()


def quixstreams(python: str, topic: Topic, output: Path) -> float:
    """The seconds of quixstreams, from the start of its application to the last message: without imports, and without the end."""
    output.mkdir()
    script = Path(__file__).with_name("quix.py")
    command = [python, str(script), topic.servers, topic.name, str(topic.count), str(output / "part-0")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.splitlines()[-1])
