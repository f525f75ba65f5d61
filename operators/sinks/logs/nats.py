"""A stream of NATS JetStream, by nats-py.

A stream is one partition. Each message has an id (`Nats-Msg-Id`), and names that of the message before it as the one that must be
last in the stream: so messages that are in flight together are in order and without gaps, whatever happens to some of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

import attrs

from operators.logs.errors import LogRefused, LogUnavailable
from operators.logs.nats.connection import NatsServer
from operators.logs.nats.streams import NatsClient, NatsLog, NatsStream
from operators.logs.protocol import OffsetsGone
from operators.sinks.logs.client import LogBounds, MessageMark, Outgoing
from operators.sinks.logs.errors import LogNotWritable, MessageRefused

ID = "Nats-Msg-Id"
"""The header with application, sink, window and sequence, joined by `/`."""

_EXPECTED_LAST, _EXPECTED_STREAM = "Nats-Expected-Last-Msg-Id", "Nats-Expected-Stream"
_WRONG_LAST_ID, _OTHER_STREAM, _NO_STREAM, _NO_RESOURCES = 10070, 10060, 10059, 10023
_SAFE = "-_.~:+@/"
_IN_FLIGHT, _IN_FLIGHT_BYTES = 1_024, 16 << 20
_POLL = 0.2
_OWN_HEADERS, _FRAME = 4_096, 12
"""Bytes: those of our headers at most, about; and those around headers."""


_ASK_AGAIN = 5.0
_SUBJECTS: dict[str, tuple[float, tuple[str, ...]]] = {}
"""The subjects of streams, with the time when this process has asked for them."""


@attrs.frozen
class NatsTarget:
    """A stream to publish to."""

    server: NatsServer
    stream: str
    max_message_bytes: int = 1_000_000

    @property
    def place(self) -> str:
        """The stream and its servers."""
        return f"stream {self.stream!r} of {self.server.place}"

    @contextlib.contextmanager
    def connected(self, doing: str) -> Iterator[OpenStream]:
        """See `LogTarget.connected`."""
        client = NatsLog(self.server).connect()
        try:
            yield OpenStream(self, client, doing)
        finally:
            client.close()

    def check(self, open_log: OpenStream) -> None:
        """See `LogTarget.check`."""
        open_log.check()

    def check_keyless(self) -> None:
        """Do nothing: messages of NATS have no keys."""

    def place_problem(self, partition: int | None, subject: str | None) -> str | None:
        """See `LogTarget.place_problem`. The stream is asked once in a process, and again, after a while, for other subjects."""
        if subject is None:
            return None
        asked, filters = _SUBJECTS.get(self.place, (-_ASK_AGAIN, ()))
        if not _matches(subject, filters) and time.monotonic() - asked >= _ASK_AGAIN:
            try:
                with self.connected("looking for its subjects") as log:
                    filters = log.subjects()
            except (LogUnavailable, LogRefused, LogNotWritable):  # only the driver may reach the servers
                return None
            _SUBJECTS[self.place] = time.monotonic(), filters
        if not filters or _matches(subject, filters):  # a stream without subjects has others as its sources
            return None
        return f"the stream has the subjects {', '.join(filters)}"


@attrs.define
class OpenStream:
    """See `OpenLog`. `doing`: the purpose, for messages."""

    target: NatsTarget
    client: NatsClient
    doing: str

    def state(self) -> LogBounds:
        """See `OpenLog.state`."""
        info = self._info()
        state = info["state"]
        return LogBounds(str(info["created"]), (max(1, int(state["first_seq"])),), (int(state["last_seq"]) + 1,))

    def subjects(self) -> tuple[str, ...]:
        """Return the subjects that belong to the stream, with wildcards."""
        return tuple(self._info()["config"].get("subjects") or ())

    def check(self) -> None:
        """Raise LogNotWritable for a stream that does not acknowledge, or takes no messages as large as ours may be."""
        config = self._info()["config"]
        if config.get("no_ack"):
            raise self._not_writable("it acknowledges no messages (no_ack)", "set no_ack to false, or name another stream")
        if config.get("mirror"):
            raise self._not_writable("it is a mirror of another stream", "name the stream that it mirrors")
        if (retention := config.get("retention", "limits")) != "limits":
            reason = f"its retention policy is {retention!r}: messages that were read are deleted, and cannot be read back"
            raise self._not_writable(reason, "name a stream of the policy 'limits', which the other one may have as its source")
        if config.get("sealed"):
            raise self._not_writable("it is sealed", "name another stream")
        largest = int(config.get("max_msg_size", -1))
        if 0 < largest < self.target.max_message_bytes:
            reason = f"its max_msg_size is {largest:,}, and max_message_bytes is {self.target.max_message_bytes:,}"
            raise self._not_writable(reason, "lower max_message_bytes, or raise the limit of the stream")

        async def limit(client: Any) -> int:
            return int(client.max_payload)

        if (largest := self.client.jetstream.call(limit, self.doing)) < self.target.max_message_bytes + _OWN_HEADERS:
            reason = f"max_payload of the server is {largest:,}, and max_message_bytes is {self.target.max_message_bytes:,}"
            reason += f", beside which a message may have {_OWN_HEADERS:,} bytes of the writer's headers"
            raise self._not_writable(reason, "lower max_message_bytes, or raise max_payload of the server")

    def marks(self, starts: Mapping[int, int], stops: Mapping[int, int]) -> Iterator[tuple[int, int, MessageMark | None]]:
        """See `OpenLog.marks`."""
        for partition, start in starts.items():
            stop = stops.get(partition, self.state().ends[0])
            stream = self.client.open(self.target.stream, 0, start, None)
            try:
                while (batch := _next_batch(stream, stop)) is not None:
                    for offset, headers in zip(batch["offset"].to_pylist(), batch["headers"].to_pylist(), strict=True):
                        yield partition, offset, mark_of({each["name"]: each["value"] for each in headers or ()}.get(ID))
            finally:
                stream.close()

    def send(self, owner: str, window: int, starts: Sequence[int], messages: Iterable[Outgoing]) -> None:
        """See `OpenLog.send`."""
        sending = _Sending(self, owner, window, starts[0])

        async def send(client: Any) -> None:
            await sending.run(client, messages)

        self.client.jetstream.call(send, self.doing)

    def check_behind(self, owner: str, window: int, start: int) -> None:
        """Raise LogUnavailable if another launch has written messages of this window, or of a later one, from an offset on."""
        for _, offset, mark in self.marks({0: start}, {}):
            if mark is not None and mark.owner == owner and mark.window >= window:
                reason = f"another launch has published message {mark.sequence} of window {mark.window}, at {offset}, meanwhile"
                raise self.unavailable(reason)

    def error(self, problem: Mapping[str, Any], window: int) -> Exception:
        """Return the error that stands for an answer of the server."""
        code, reason = int(problem.get("err_code", 0)), str(problem.get("description", problem))
        if code == _OTHER_STREAM:
            return self._not_writable(reason, "let the subject belong to this stream alone, or name the other stream")
        if code == _NO_STREAM:
            return self._not_writable(reason, "create the stream, or correct its name")
        is_full = "exceeded" in reason  # a limit of the stream, under the code of servers that are busy
        if (int(problem.get("code", 0)) >= 500 and not is_full) or code == _NO_RESOURCES:
            return self.unavailable(reason)
        return MessageRefused(log=self.target.place, window=window, reason=reason)

    def no_stream(self, subject: str) -> LogNotWritable:
        """Return the error for a subject that belongs to no stream."""
        return self._not_writable(f"no stream has the subject {subject!r}", "add it to the subjects of the stream")

    def unavailable(self, reason: str) -> LogUnavailable:
        """Return the error of a server that is away."""
        return LogUnavailable(log=self.target.place, doing=self.doing, reason=reason)

    def _info(self) -> dict[str, Any]:
        info = self.client.info(self.target.stream)
        if info is None:
            raise self._not_writable("there is no such stream", "create the stream, or correct its name")
        return info

    def _not_writable(self, reason: str, remedy: str) -> LogNotWritable:
        return LogNotWritable(log=self.target.place, doing=self.doing, reason=reason, help=remedy)


@attrs.frozen
class _Message:
    id: str
    subject: str
    payload: bytes
    headers: dict[str, str]


@attrs.define(eq=False)
class _Sending:
    """The messages of a window on their way. `waiting`: those without an answer, in order, by their numbers.

    `start`: where messages of the window begin in the stream.
    """

    log: OpenStream
    owner: str
    window: int
    start: int
    waiting: deque[tuple[int, _Message]] = attrs.field(init=False, factory=deque)
    answers: dict[int, Any] = attrs.field(init=False, factory=dict)  # an int: it is in, there; else the problem
    most: int = attrs.field(init=False, default=_IN_FLIGHT)
    _next: int = attrs.field(init=False, default=0)
    _bytes: int = attrs.field(init=False, default=0)
    _behind: int = attrs.field(init=False, default=0)  # the offset behind the last message that is in
    _last: str | None = attrs.field(init=False, default=None)  # the id of the message that was sent last
    _client: Any = attrs.field(init=False, default=None)
    _inbox: str = attrs.field(init=False, default="")
    _answered: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)

    async def run(self, client: Any, messages: Iterable[Outgoing]) -> None:
        """Send all messages, and wait until they are in."""
        self._client, self._inbox = client, client.new_inbox()
        subscription = await client.subscribe(f"{self._inbox}.*", cb=self._note, pending_msgs_limit=0, pending_bytes_limit=0)
        try:
            for some in messages:
                for message in self._of(some):
                    while len(self.waiting) >= self.most or self._bytes > _IN_FLIGHT_BYTES:
                        await self._wait(self.most // 2)
                    await self._send(message)
            await self._wait(0)
        finally:
            with contextlib.suppress(Exception):  # the connection may be lost, and what came is right
                await subscription.unsubscribe()

    def _of(self, some: Outgoing) -> Iterator[_Message]:
        prefix = f"{quote(self.owner, safe=_SAFE)}/{self.window}/"
        for number, subject, value, headers in zip(some.sequences, some.subjects, some.values, some.headers, strict=True):
            own = {name: (data or b"").decode("utf-8", "replace") for name, data in headers or ()}
            identity = f"{prefix}{number}"
            yield _Message(identity, subject or "", value or b"", {**own, ID: identity, _EXPECTED_STREAM: self.log.target.stream})

    async def _send(self, message: _Message) -> None:
        headers = message.headers if self._last is None else {**message.headers, _EXPECTED_LAST: self._last}
        size = len(message.payload) + sum(len(name) + len(value.encode()) + 4 for name, value in headers.items()) + _FRAME
        if size > self._client.max_payload:  # the server would close the connection
            reason = f"it has {size:,} bytes with its headers, and max_payload of the server is {self._client.max_payload:,}"
            raise MessageRefused(log=self.log.target.place, window=self.window, reason=reason)
        number, self._next, self._last = self._next, self._next + 1, message.id
        self.waiting.append((number, message))
        self._bytes += len(message.payload)
        await self._client.publish(message.subject, message.payload, reply=f"{self._inbox}.{number}", headers=headers)

    async def _note(self, answer: Any) -> None:
        """Keep an answer of the server."""
        number, status = int(answer.subject.rpartition(".")[2]), (answer.headers or {}).get("Status")
        if status is not None:
            self.answers[number] = {"status": status}
        else:
            answered = json.loads(answer.data)
            self.answers[number] = answered.get("error") or int(answered["seq"])
        self._answered.set()

    async def _wait(self, left: int) -> None:
        """Wait until at most `left` messages have no answer. Raises LogUnavailable, LogNotWritable, MessageRefused."""
        deadline = time.monotonic() + self.log.target.server.timeout
        while len(self.waiting) > left:
            before = len(self.answers)
            await self._take()
            if len(self.waiting) <= left:
                return
            if len(self.answers) == before:
                self._answered.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._answered.wait(), _POLL)
                    deadline = time.monotonic() + self.log.target.server.timeout
            if not self._client.is_connected:
                raise self.log.unavailable("the connection is lost")
            if time.monotonic() > deadline:
                raise self.log.unavailable(f"no answer for {self.log.target.server.timeout:g} s")

    async def _take(self) -> None:
        """Drop the first messages that are in. Where a message of another producer came between two of ours, send again."""
        while self.waiting and self.waiting[0][0] in self.answers:
            number, message = self.waiting[0]
            problem = self.answers[number]
            if isinstance(problem, int):
                if problem < self.start:  # a duplicate of what the stream has lost since
                    raise self.log.unavailable(
                        "it drops messages whose ids it still knows: wait until its duplicate_window is over"
                    )
                self._behind = problem + 1
                self.waiting.popleft()
                self._bytes -= len(message.payload)
                del self.answers[number]
                continue
            if not all(each in self.answers for each, _ in self.waiting):
                return  # what is behind it is refused too, as it is not behind it
            if problem.get("err_code") == _WRONG_LAST_ID:
                await asyncio.to_thread(self.log.check_behind, self.owner, self.window, self._behind)
                await self._again()
                return
            if "status" in problem:
                raise self.log.no_stream(message.subject)
            raise self.log.error(problem, self.window)

    async def _again(self) -> None:
        """Send what is refused again, behind whatever is last now."""
        refused = [message for _, message in self.waiting]
        self.waiting.clear()
        self.answers.clear()
        self._bytes, self._last, self.most = 0, None, max(16, self.most // 2)
        for message in refused:
            await self._send(message)


def _next_batch(stream: NatsStream, stop: int) -> Any:
    """Return the next messages, behind those that limits of the stream remove meanwhile."""
    while True:
        try:
            return stream.read(stop)
        except OffsetsGone as gone:
            stream.seek(gone.first)


def _matches(subject: str, filters: Sequence[str]) -> bool:
    """Return whether a subject belongs to one of several filters.

    >>> _matches("orders.se", ["bills", "orders.*"]), _matches("orders.se.1", ["orders.*"]), _matches("a.b.c", ["a.>"])
    (True, False, True)
    """
    parts = subject.split(".")
    for each in filters:
        wanted = each.split(".")
        if wanted[-1] == ">" and len(parts) >= len(wanted):
            wanted, given = wanted[:-1], parts[: len(wanted) - 1]
        else:
            given = parts
        if len(given) == len(wanted) and all(want in ("*", part) for want, part in zip(wanted, given, strict=True)):
            return True
    return False


def mark_of(identity: bytes | None) -> MessageMark | None:
    """Return the mark of a message by its id; None for a message of another producer.

    >>> mark_of(b"shop-1f/sales/3/17")
    MessageMark(owner='shop-1f/sales', window=3, sequence=17)
    """
    parts = (identity or b"").decode("utf-8", "replace").rsplit("/", 2)
    if len(parts) < 3 or not parts[1].isdigit() or not parts[2].isdigit():
        return None
    return MessageMark(unquote(parts[0]), int(parts[1]), int(parts[2]))
