"""AbstractLogSplitterInput: plans the messages of a log as ranges of offsets, window by window."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from dagflow import OperatorContext, OutputPort, State, WindowState
from dagflow.config import Bytes, MiB, Millis, Seconds, millis_of, not_negative, one_of, seconds_of, size_of
from dagflow.scaling import Backlog
from operators.logs.access import Connected, OnLost, report_lost
from operators.logs.blocks import OffsetBlock, PartitionPosition, cut_ranges
from operators.logs.errors import OffsetsLost, StartTooFar, TopicMissing, TopicReplaced
from operators.logs.event_times import ValueFormat, event_time_problem, event_times_of, value_format_problem
from operators.logs.messages import bytes_of
from operators.logs.protocol import LogPartition, MessageLog, OffsetsGone, Topics, time_of
from operators.names import one_or_more
from operators.polling import PollingInput
from operators.problems import all_problems, below_one

BLOCK_BYTES = 8 * MiB
LEAST_RECORDS, MOST_RECORDS = 1_000, 1_000_000
MANY_BLOCKS = 1_000
BLOCKS_PER_SLOT = 16
SHOWN_PARTITIONS = 50

Start = str | int | dict[str, int]


def start_problem(start: Any) -> str | None:
    """Return what is wrong with a property `start`, if anything is.

    >>> [start_problem(each) is None for each in ("latest", 17, {"a[0]": 17}, "1.1.2026", True, {"a[0]": "17"}, ["a"])]
    [True, True, True, False, False, False, False]
    """
    if isinstance(start, str):
        if start in ("earliest", "latest"):
            return None
        try:
            time_of(start)
        except ValueError:
            pass
        else:
            return None
    elif isinstance(start, Mapping):
        if all(isinstance(name, str) and type(offset) is int and offset >= 0 for name, offset in start.items()):
            return None
    elif type(start) is int:
        return None
    return (
        f"start is {start!r}, and must be earliest, latest, a time such as 2026-01-31T12:00Z or in microseconds since the epoch, "
        'or offsets: {"events[0]": 17}, in TOML and with -D {"events[0]" = 17}'
    )


def topic_problems(topics: Sequence[Any]) -> list[str]:
    """Return what is wrong with a property `topics`.

    >>> topic_problems(("events", "^log-.*")), len(topic_problems(("^(", 7)))
    ([], 2)
    """
    if not topics or not all(topics):
        return ["topics is empty: name a topic, or a pattern such as '^events-.*'"]
    problems = [f"topics has {each!r}, which is not text" for each in topics if not isinstance(each, str)]
    for each in Topics(tuple(each for each in topics if isinstance(each, str))).patterns:
        try:
            re.compile(each[1:])
        except re.error as error:
            problems.append(f"topics has the pattern {each!r}, which is not a regular expression: {error}")
    return problems


def _offset(position: PartitionPosition | Mapping[str, Any]) -> int:
    """Return the offset of a position, which is a mapping where it was saved with a decision."""
    return int(position["offset"] if isinstance(position, Mapping) else position.offset)


class Look:
    """The partitions as a launch has seen them last.

    Attributes:
        ends: the offset behind each partition that is read up to it.
        at: the time of the look, by the monotonic clock; None before the first one.
        moved: the time of the look at which each partition had new offsets last, or was seen first.
        bytes_per_offset, messages_per_offset: of each topic that was sampled. Offsets may be far apart.
    """

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}
        self.at: float | None = None
        self.moved: dict[str, float] = {}
        self.bytes_per_offset: dict[str, float] = {}
        self.messages_per_offset: dict[str, float] = {}


@attrs.define(slots=False)
class LogPlanning:
    """The properties of planning that the modules of a log have, too: see AbstractLogSplitterInput."""

    start: Start = attrs.field(default="earliest", kw_only=True)
    on_lost: OnLost = attrs.field(default="fail", kw_only=True, validator=one_of(("fail", "skip")))
    wait: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))
    event_time: str | None = attrs.field(default=None, kw_only=True)
    out_of_orderness: Seconds = attrs.field(default=0.0, kw_only=True, converter=seconds_of, validator=not_negative)
    idle_timeout: Seconds = attrs.field(default=30.0, kw_only=True, converter=seconds_of, validator=not_negative)


@attrs.define(slots=False)
class AbstractLogSplitterInput(LogPlanning, PollingInput):
    """Plans the messages of a log that are new, as ranges of offsets of its partitions.

    A run with `--once` reads what the log has when it first looks; a continuous one looks again after each interval, and finds
    new partitions and topics. The position in each partition is remembered over windows and launches, with the run.

    A subclass says how the log is reached (`log`).

    Args:
        topics: names, and patterns, which begin with `^`.
        start: where partitions begin that are there at the first launch: `earliest`, `latest`, a time (`2026-01-31T12:00Z`), or
            an offset for each partition (`{"events[0]": 17}`). A number is a time in microseconds since the epoch.
            Partitions that come later are read from their first message, or from the offset that is given for them.
        block_records: offsets in a block; None: about `block_bytes`, and fewer where there is little to read.
        block_bytes: the size of a block, by a sample of the messages of its topic.
        window_blocks: blocks in a window; None: 16 for each slot.
        scan_interval_millis: the time from one look to the next, in milliseconds; continuous runs only.
        on_lost: the reaction to messages that the log deleted before they were planned: `fail`, or `skip` to go on behind them.
            They are counted (`offsets_lost`), warned of, and reported on the port `errors`.
        wait: whether topics that are not there are waited for; continuous runs only.
        event_time: declares a watermark: the event times of messages, less `out_of_orderness`. `timestamp` is that of the
            message, `value.time` a field of its value: text in ISO 8601, an integer of microseconds, or a datetime of a decoder.
            None: there is none.
        value_format: how values are read for such a field: `json`, or a function of bytes that returns a dictionary or an object.
        out_of_orderness: how much later than others of its partition a message may come.
        idle_timeout: a partition that has had no new messages for this time, by the clock, is idle: it holds the watermark back
            by this time at most. With `--once`, one without new messages at the first look is idle at once.

    Counters: `blocks_planned`, `offsets_planned`, `offsets_lost`.

    Raises TopicMissing, StartTooFar, TopicReplaced, OffsetsLost, LogUnavailable, LogRefused.
    """

    topics: tuple[str, ...] = attrs.field(kw_only=True, converter=one_or_more)
    block_records: int | None = attrs.field(default=None, kw_only=True)
    block_bytes: Bytes = attrs.field(default=BLOCK_BYTES, kw_only=True, converter=size_of, validator=attrs.validators.ge(1))
    window_blocks: int | None = attrs.field(default=None, kw_only=True)
    scan_interval_millis: Millis = attrs.field(default=200, kw_only=True, converter=millis_of, validator=not_negative)
    value_format: ValueFormat = attrs.field(default="json", kw_only=True)

    blocks_metadata_output = OutputPort[OffsetBlock]()

    positions = State[dict[str, PartitionPosition]](factory=dict)
    next_block_id = State(0)
    has_looked = State(False)

    blocks_in_window = WindowState(0)

    # What subclasses override

    @property
    def log(self) -> MessageLog:
        """The log."""
        raise NotImplementedError

    # For the framework

    def check(self) -> None:
        """Raise ValueError for properties that no log can have."""
        with all_problems(super().check) as problems:
            problems.extend(topic_problems(self.topics))
            problems_of_start = (
                start_problem(self.start),
                event_time_problem(self.event_time),
                value_format_problem(self.value_format),
            )
            problems.extend(problem for problem in problems_of_start if problem is not None)
            problems.extend(below_one(self, "block_records", "window_blocks"))

    def check_inputs(self, context: OperatorContext) -> None:
        """Raise TopicMissing, LogUnavailable, LogRefused."""
        connected = Connected(self.log)
        try:
            self._check_topics(connected.client.partitions(Topics(self.topics)), context)
        finally:
            connected.close()

    def setup(self, context: OperatorContext) -> None:
        """Begin without a connection, and with nothing seen."""
        super().setup(context)
        self._connected = Connected(self.log)
        self._look = Look()

    def emit_tuples(self) -> None:
        """Look for new messages if it is time, and emit blocks until the window is full."""
        if self.is_time(self._look.at):
            self._see()
        self._plan()

    def is_exhausted(self) -> bool:
        """Return True if all has been planned that was there at the first look. Never in a continuous run."""
        return not self._context.continuous and self._look.at is not None and not self._unread()

    def backlog(self) -> Backlog:
        """Return the blocks of messages that were seen and are not planned."""
        items = size = 0.0
        for name, (start, stop) in self._unread().items():
            topic = self.positions[name].topic
            items += (stop - start) / self._records(topic)
            size += (stop - start) * self._look.bytes_per_offset.get(topic, 0.0)
        return Backlog(math.ceil(items), math.ceil(size))

    def position_text(self, states: Mapping[str, Any]) -> str:
        """Return the offset behind each partition that is read after a window, for the ledgers of the outputs."""
        positions = states.get("positions") or {}
        texts = [f"{name} < {_offset(position)}" for name, position in list(positions.items())[:SHOWN_PARTITIONS]]
        more = len(positions) - len(texts)
        return ", ".join([*texts, *([f"and {more} more partitions"] if more > 0 else [])])

    def tells_watermark(self) -> bool:
        """Return True if `event_time` is set."""
        return self.event_time is not None

    def watermark(self) -> int | None:
        """Return the time up to which all partitions have been planned, if `event_time` is set."""
        if self.event_time is None or self._look.at is None:
            return None  # before the first look it is not known which partitions have unread messages
        unread, positions = self._unread(), self.positions
        active = {name: each.event_time for name, each in positions.items() if name in unread or not self._is_idle(name)}
        if None in active.values():
            return None  # its first messages are not planned yet, and their times not known
        known = active or {name: each.event_time for name, each in positions.items()}
        newest = max((time for time in known.values() if time is not None), default=None)
        if newest is None:
            return None
        times = [newest, *(time for time in active.values() if time is not None)]
        bound = newest - round(self.idle_timeout * 1e6)
        for name, position in positions.items():
            if name not in active:
                times.append(bound if position.event_time is None else max(bound, position.event_time))
        return min(times) - round(self.out_of_orderness * 1e6)

    def teardown(self) -> None:
        """Close the connection."""
        if hasattr(self, "_connected"):
            self._connected.close()

    # Looking

    def _is_idle(self, name: str) -> bool:
        """Return True for a partition that has had no new messages for `idle_timeout`, as far as looks can tell."""
        look = self._look
        assert look.at is not None
        moved = look.moved.get(name)  # None: the partition is gone
        now = look.at if self._context.continuous else self._context.clock.monotonic()
        return moved is None or now - moved >= self.idle_timeout

    def _see(self) -> None:
        """Look at the partitions: find new ones, check those that are known, and note how far they can be read."""
        look = self._look
        partitions = self._connected.client.partitions(Topics(self.topics))
        now = self._context.clock.monotonic()
        self._check_topics(partitions, self._context)
        fresh = [each for each in partitions if each.name not in self.positions]
        starts = self._starts(fresh, partitions)
        positions = dict(self.positions)
        for each, offset in zip(fresh, starts, strict=True):
            positions[each.name] = PartitionPosition(each.topic, each.partition, offset, each.identity)
        for each in partitions:
            positions[each.name] = self._checked(positions[each.name], each)
        for name in positions.keys() - {each.name for each in partitions}:
            self._gone(positions[name])
        for each in partitions:
            if look.ends.get(each.name) != each.end:
                is_new = self._context.continuous or positions[each.name].offset < each.end
                look.moved[each.name] = now if is_new else -math.inf
        self.positions, self.has_looked, look.at = positions, True, now
        look.ends = {each.name: each.end for each in partitions}
        look.moved = {name: look.moved[name] for name in look.ends}

    def _starts(self, fresh: Sequence[LogPartition], partitions: Sequence[LogPartition]) -> list[int]:
        """Return the offsets at which partitions begin that are not known yet: by `start` those of the first look."""
        start, is_first = self.start, not (self.has_looked or self.positions)
        if isinstance(start, dict):
            unknown = [name for name in start if name not in {each.name for each in partitions}]
            if is_first and unknown and not self._waits(self._context):
                names = tuple(each.name for each in partitions)
                raise TopicMissing(operator=self._context.name, log=self.log.place, topic=unknown[0], known=names)
            for each in fresh:
                if start.get(each.name, 0) > each.end:
                    raise StartTooFar(operator=self._context.name, partition=each.name, start=start[each.name], end=each.end)
            return [start.get(each.name, each.first) for each in fresh]
        if start == "earliest" or not is_first:
            return [each.first for each in fresh]
        if start == "latest":
            return [each.end for each in fresh]
        time = start if isinstance(start, int) else time_of(start)
        return self._connected.client.offsets_at(fresh, time)

    def _checked(self, position: PartitionPosition, seen: LogPartition) -> PartitionPosition:
        """Return the position in a partition, behind messages that are lost. Raises TopicReplaced, OffsetsLost."""
        if None not in (position.identity, seen.identity) and position.identity != seen.identity:
            raise self._replaced(seen.name, "it was deleted and created again since")
        is_ahead = position.last_block_id < 0 and self._starts_at_time()  # the message of that time is not readable yet
        if position.offset > seen.end and not is_ahead:
            raise self._replaced(
                seen.name, f"it was read up to offset {position.offset - 1:,}, and ends before offset {seen.end:,} now"
            )
        if position.identity is None and seen.identity is not None:
            position = attrs.evolve(position, identity=seen.identity)
        if position.offset >= seen.first:
            return position
        lost = OffsetsLost(operator=self._context.name, partition=seen.name, start=position.offset, stop=seen.first)
        if self.on_lost == "fail":
            raise lost
        self._context.count("offsets_lost", lost.stop - lost.start)
        self._context.warn(
            f"{seen.name} no longer has the offsets {lost.start:,} to {lost.stop - 1:,}, which were not read: reading goes on at "
            f"offset {lost.stop:,}"
        )
        report_lost(self, self._context, lost)
        return attrs.evolve(position, offset=seen.first)

    def _starts_at_time(self) -> bool:
        return not isinstance(self.start, dict) and self.start not in ("earliest", "latest")

    def _gone(self, position: PartitionPosition) -> None:
        """React to a partition that is known and not among those seen: an error, unless only a pattern has chosen it."""
        if not Topics(self.topics).has(position.topic):
            raise self._replaced(position.topic, "messages of it were read, and `topics` no longer has it")
        if position.topic in Topics(self.topics).names:
            raise self._replaced(position.topic, "the log no longer has it")
        self.warn_once(position.topic, f"topic {position.topic!r} is gone; messages that were not read are lost")

    def _check_topics(self, partitions: Sequence[LogPartition], context: OperatorContext) -> None:
        """Raise TopicMissing for topics that are given by name and not there, and for patterns if nothing is there."""
        if self._waits(context):
            return
        there = {each.topic for each in partitions}
        topics = Topics(self.topics)
        known = {each.topic for each in self.positions.values()}
        missing = [name for name in topics.names if name not in there and name not in known]
        if not missing and not there and not known:
            missing = list(topics.patterns[:1])
        if missing:
            raise TopicMissing(operator=context.name, log=self.log.place, topic=missing[0], known=tuple(sorted(there)))

    def _waits(self, context: OperatorContext) -> bool:
        return self.wait and context.continuous

    def _replaced(self, partition: str, reason: str) -> TopicReplaced:
        return TopicReplaced(operator=self._context.name, partition=partition, reason=reason)

    # Planning

    def _unread(self) -> dict[str, tuple[int, int]]:
        """Return the unread offsets of each partition that has any, those first whose last block is oldest."""
        ends, positions = self._look.ends, self.positions
        names = [name for name, end in ends.items() if positions[name].offset < end]
        names.sort(key=lambda name: positions[name].last_block_id)
        return {name: (positions[name].offset, ends[name]) for name in names}

    def _plan(self) -> None:
        """Emit blocks of unread messages, as many as the window takes."""
        most = self.window_blocks or BLOCKS_PER_SLOT * self._context.slots
        room, unread = most - self.blocks_in_window, self._unread()
        if not unread or room <= 0:
            return
        topics = {name: self.positions[name].topic for name in unread}
        for name, topic in topics.items():
            if self._wants_sample(topic, *unread[name]):
                self._sample(self.positions[name], *unread[name])
        share = sum(stop - start for start, stop in unread.values()) // room  # so that there is work for all readers
        records = {name: self._records(topic, share) for name, topic in topics.items()}
        ranges = cut_ranges(unread, records, room)
        times = self._last_times(ranges)  # asked for before anything is emitted: a question that fails is asked again
        positions, planned = dict(self.positions), 0
        for name, start, stop in ranges:
            position = positions[name]
            block = OffsetBlock(
                block_id=self.next_block_id,
                topic=position.topic,
                partition=position.partition,
                start=start,
                stop=stop,
                previous_block_id=position.last_block_id,
                size=round((stop - start) * self._look.bytes_per_offset[position.topic]),
                identity=position.identity,
            )
            self.blocks_metadata_output.emit(block)
            event_time = times.get(name, position.event_time)
            positions[name] = attrs.evolve(position, offset=stop, last_block_id=block.block_id, event_time=event_time)
            self.next_block_id += 1
            self.blocks_in_window += 1
            planned += stop - start
        self._context.count("blocks_planned", len(ranges))
        self._context.count("offsets_planned", planned)
        self.positions = positions
        if self.blocks_in_window >= most:
            self._context.close_window()

    def _records(self, topic: str, share: int | None = None) -> int:
        """Return the offsets of a block. `share`: those for each block if all readers are to have work."""
        if self.block_records is not None:
            return self.block_records
        density = self._look.messages_per_offset.get(topic, 1.0)
        most = round(self.block_bytes / max(self._look.bytes_per_offset.get(topic, 0.0), density))
        most = max(1, min(round(MOST_RECORDS / density), most))
        return most if share is None else max(1, min(most, max(round(LEAST_RECORDS / density), share)))

    def _wants_sample(self, topic: str, start: int, stop: int) -> bool:
        """Return True for a topic that was not sampled, or whose offsets are further apart now: blocks would be too many."""
        if topic not in self._look.bytes_per_offset:
            return True
        return self.block_records is None and stop - start > MANY_BLOCKS * self._records(topic)

    def _sample(self, position: PartitionPosition, start: int, stop: int) -> None:
        """Note about how many bytes and messages an offset has, by the first messages of a partition that are not planned."""
        batch = self._batch(position, start, stop)
        size, span, messages = 0, 1, 1
        if batch is not None:
            size, messages = bytes_of(batch), batch.num_rows
            span = batch.column("offset")[-1].as_py() - start + 1
        self._look.bytes_per_offset[position.topic] = size / span
        self._look.messages_per_offset[position.topic] = messages / span

    def _last_times(self, ranges: Sequence[tuple[str, int, int]]) -> dict[str, int | None]:
        """Return the event time of each partition after ranges of it, if there is a watermark."""
        if self.event_time is None:
            return {}
        bounds: dict[str, tuple[int, int]] = {}
        for name, start, stop in ranges:
            bounds[name] = (bounds.get(name, (start, stop))[0], stop)
        return {name: self._last_time(self.positions[name], start, stop) for name, (start, stop) in bounds.items()}

    def _last_time(self, position: PartitionPosition, start: int, stop: int) -> int | None:
        """Return the latest event time of a partition, by the last message of a range."""
        assert self.event_time is not None
        has_messages = False
        for before in (1, 100, 10_000):  # a gap may be there
            batch = self._batch(position, max(start, stop - before), stop)
            has_messages = has_messages or batch is not None
            times = [] if batch is None else event_times_of(batch, self.event_time, self.value_format)
            if times:
                return max([*times, *([position.event_time] if position.event_time is not None else [])])
        if has_messages:
            text = f"the last messages of topic {position.topic!r} have no event time ({self.event_time}): its watermark stays"
            self.warn_once(f"event time of {position.topic}", text)
        return position.event_time

    def _batch(self, position: PartitionPosition, start: int, stop: int) -> pa.RecordBatch | None:
        """Return the first messages of a range; None if there are none, or no longer."""
        try:
            stream = self._connected.client.open(position.topic, position.partition, start, position.identity)
            try:
                return stream.read(stop)
            finally:
                stream.close()
        except OffsetsGone:
            return None
        except TopicReplaced as error:
            error.operator = error.operator or self._context.name  # which adapters do not know
            raise
