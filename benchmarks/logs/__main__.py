"""`python -m benchmarks.logs`: starts a broker, runs the cases and prints the tables."""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import attrs

from apps.clickstream.sample import PARTITIONS, broker, create_topic
from benchmarks import report
from benchmarks.logs import ours, peers
from benchmarks.logs.messages import SIZE, Topic, write_lines
from benchmarks.rounds import Case, Contestant, Goal, Limit

MARK = "logs measured"
BARE, ONE, TWO = "confluent-kafka, one process", "dagflow, one slot", "dagflow, two slots"
PER_SLOT = 500_000  # messages in a second that are asked for
LATENCY = 0.8


def outcome(output: Path) -> tuple[int, int]:
    """The lines and bytes of an output."""
    texts = [path.read_bytes() for path in output.glob("part-*") if path.is_file()]
    return sum(text.count(b"\n") for text in texts), sum(map(len, texts))


@attrs.define
class NewTopics:
    """Topics to publish to, each to be used once."""

    servers: str
    topic: Topic | None = None
    _numbers: Iterator[int] = attrs.field(factory=itertools.count, init=False)

    def timed(self, publish: Callable[[Topic], None]) -> float:
        """Publish to a new topic, and return the seconds."""
        self.topic = Topic(self.servers, f"published-{next(self._numbers)}", PARTITIONS)
        create_topic(self.servers, self.topic.name)
        began = time.perf_counter()
        publish(self.topic)
        return time.perf_counter() - began

    def content(self) -> tuple[int, int]:
        """Return the messages and bytes of the newest topic."""
        assert self.topic is not None
        return self.topic.content()


def cases(folder: Path, servers: str, count: int, runner: str, quix: str | None, only: Sequence[str]) -> Iterator[Case]:
    """The cases; their topics are filled when they come."""
    output = folder / "out"
    check, clean = partial(outcome, output), partial(shutil.rmtree, output, ignore_errors=True)
    if "throughput" in only:
        create_topic(servers, "throughput")
        topic = Topic(servers, "throughput", PARTITIONS, count)
        topic.fill()
        size = count * SIZE
        contestants = [Contestant(BARE, partial(peers.bare, topic, output), check, clean, size)]
        if quix is not None:
            contestants.append(Contestant("quixstreams", partial(peers.quixstreams, quix, topic, output), check, clean, size))
        for name, slots in ((ONE, 1), (TWO, 2)):
            contestants.append(Contestant(name, partial(ours.filtered, topic, output, runner, slots), check, clean, size))
        function = partial(ours.filtered, topic, output, runner, 1, by_function=True)
        contestants.append(Contestant(f"{ONE}, plain Python for each message", function, check, clean, size))
        goals: list[Goal | Limit] = [Limit(ONE, count / PER_SLOT), Goal(ONE, BARE, least=1.0)]
        yield Case(
            "throughput",
            f"{count:,} messages of {SIZE} bytes from {PARTITIONS} partitions through a filter to files",
            contestants,
            goals,
        )
    if "publishing" in only:
        source, topics = folder / "lines.txt", NewTopics(servers)
        write_lines(source, count // 2)
        contestants = [
            Contestant(BARE, partial(topics.timed, partial(peers.publish, source)), topics.content, size=count // 2 * SIZE),
            Contestant(
                ONE, partial(topics.timed, partial(ours.published, source, runner=runner)), topics.content, size=count // 2 * SIZE
            ),
        ]
        yield Case("publishing", f"{count // 2:,} lines of {SIZE} bytes to a topic of {PARTITIONS} partitions", contestants)
    if "latency" in only:
        create_topic(servers, "latency")
        messages, pause = (20, 0.3) if count > 100_000 else (3, 0.1)
        one = partial(ours.latency, Topic(servers, "latency", PARTITIONS), output, runner, messages, pause)
        title = f"From produce to visible output, median of {messages} messages, windows of {ours.WINDOW}"
        yield Case("latency", title, [Contestant("dagflow", one, None, clean)], [Limit("dagflow", LATENCY)], rounds=1, warm_up=0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases that are asked for. 1 when a goal is missed (never with --quick), else 0."""
    names = ["throughput", "publishing", "latency"]
    parser = report.parser("logs", "Messages of a Kafka broker to files: a bare consumer, quixstreams and dagflow, in turn.")
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages of the topic (1,000,000)")
    parser.add_argument("--only", action="append", choices=names, help="run this case; may be given again")
    parser.add_argument("--runner", choices=["local", "spark"], default="local")
    parser.add_argument("--quix-python", help="a Python that has quixstreams, which wants another confluent-kafka")
    parser.add_argument("--servers", help="a Kafka cluster without these topics; without it, Tansu is started")
    given = parser.parse_args(arguments)
    results = report.Report(given, MARK, report.typed("logs", arguments))
    with tempfile.TemporaryDirectory(prefix="dagflow-bench-", dir=given.disk) as name:
        folder, count = Path(name), 20_000 if given.quick else given.messages
        with broker(folder / "broker.log") as servers:
            for case in cases(folder, given.servers or servers, count, given.runner, given.quix_python, given.only or names):
                results.run(case)
    return results.end()


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
