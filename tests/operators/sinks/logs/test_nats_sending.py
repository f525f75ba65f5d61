"""Messages on their way to a stream of NATS, by a client that answers as the test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from dagflow.errors import LogNotWritable, LogUnavailable, MessageRefused
from operators.logs.nats.connection import NatsServer
from operators.sinks.logs.client import MessageMark, Outgoing
from operators.sinks.logs.nats import ID, NatsTarget, OpenStream

Headers = dict[str, str]
Answer = dict[str, Any]


@attrs.define
class Stream:
    """A stream, its connection and its client. `answers`: the answer to a message, by the number of messages before it."""

    answers: Callable[[int, Headers], Answer]
    sent: list[str] = attrs.field(factory=list)
    is_connected: bool = True
    max_payload: int = 1 << 20
    _note: Any = None

    @property
    def jetstream(self) -> Stream:
        return self

    def call(self, work: Any, doing: str) -> Any:
        return asyncio.run(work(self))

    def info(self, stream: str) -> Answer:
        return {"config": {}}

    def new_inbox(self) -> str:
        return "inbox"

    async def subscribe(self, subject: str, cb: Any, **limits: int) -> Stream:
        self._note = cb
        return self

    async def unsubscribe(self) -> None:
        pass

    async def publish(self, subject: str, payload: bytes, reply: str, headers: Headers) -> None:
        answer = self.answers(len(self.sent), headers)
        self.sent.append(headers[ID])
        await self._note(attrs.make_class("Answer", ["subject", "data", "headers"])(reply, json.dumps(answer).encode(), None))


WRONG_LAST = {"error": {"err_code": 10070, "code": 400, "description": "wrong last msg ID"}}


def opened(stream: Any) -> OpenStream:
    return OpenStream(NatsTarget(NatsServer("nats://localhost:4222"), "ORDERS"), stream, "publishing window 3")


def send(stream: Stream, count: int, start: int = 1, value: bytes = b"x") -> None:
    none: list[Any] = [None] * count
    messages = Outgoing(
        partitions=[0] * count,
        sequences=list(range(count)),
        subjects=["orders"] * count,
        keys=none,
        values=[value] * count,
        headers=none,
        times=none,
    )
    opened(stream).send("shop-1f/sales", 3, (start,), iter([messages]))


@pytest.mark.parametrize(
    ("mark", "is_refused"),
    [
        (MessageMark("shop-1f/sales", 3, 2), True),
        (MessageMark("shop-1f/sales", 4, 0), True),
        (MessageMark("shop-1f/sales", 2, 9), False),
        (MessageMark("shop-2e/sales", 3, 2), False),
        (None, False),
    ],
)
def test_what_another_launch_has_published_is_not_sent_again(
    mark: MessageMark | None, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch was paused behind its second message. What came meanwhile is at sequence 13, behind the one at 12."""
    looked: list[dict[int, int]] = []

    def marks(log: OpenStream, starts: dict[int, int], stops: dict[int, int]) -> Iterator[tuple[int, int, MessageMark | None]]:
        looked.append(starts)
        yield 0, 13, mark

    def answer(number: int, headers: Headers) -> Answer:
        return WRONG_LAST if 2 <= number < 5 else {"seq": 11 + number}

    monkeypatch.setattr(OpenStream, "marks", marks)
    stream = Stream(answer)
    if is_refused:
        with pytest.raises(LogUnavailable, match=r"another launch has published message \d of window \d, at 13, meanwhile"):
            send(stream, 5)
        assert len(stream.sent) == 5
    else:
        send(stream, 5)
        assert [each.rpartition("/")[2] for each in stream.sent] == ["0", "1", "2", "3", "4", "2", "3", "4"]
    assert looked == [{0: 13}]


def test_a_duplicate_of_a_message_that_the_stream_has_lost_is_not_taken_as_in() -> None:
    stream = Stream(lambda number, headers: {"seq": 7 + number, "duplicate": True})
    with pytest.raises(LogUnavailable, match="it drops messages whose ids it still knows"):
        send(stream, 3, start=10)
    send(Stream(lambda number, headers: {"seq": 10 + number, "duplicate": True}), 3, start=10)


def accepted(number: int, headers: Headers) -> Answer:
    return {"seq": number + 1}


def test_messages_that_the_server_would_not_take_are_refused_at_launch() -> None:
    opened(Stream(accepted)).check()
    with pytest.raises(LogNotWritable, match="max_payload of the server is 1,000,000, and max_message_bytes is 1,000,000"):
        opened(Stream(accepted, max_payload=1_000_000)).check()


def test_a_message_with_headers_above_the_limit_of_the_server_is_not_sent() -> None:
    stream = Stream(accepted, max_payload=1_000)
    with pytest.raises(MessageRefused, match=r"it has 1,\d\d\d bytes with its headers, and max_payload of the server is 1,000"):
        send(stream, 2, value=b"x" * 950)
    assert stream.sent == []
    send(stream, 2, value=b"x" * 700)
