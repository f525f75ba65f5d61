from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from dagflow.local.channel import Channel, ChannelClosed


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    one, other = socket.socketpair()
    with one, other:
        yield Channel(one), Channel(other)


def test_values_come_through_in_order(ends: tuple[Channel, Channel]) -> None:
    for value in (1, "two", b"3" * 100_000):
        ends[0].send(value)
    assert [ends[1].receive() for _ in range(3)] == [1, "two", b"3" * 100_000]


def test_the_end_of_the_other_process_is_noticed(ends: tuple[Channel, Channel]) -> None:
    assert ends[1].is_silent
    ends[0].close()
    assert not ends[1].is_silent
    with pytest.raises(ChannelClosed):
        ends[1].receive()
    with pytest.raises(ChannelClosed):
        ends[1].send(1)


def test_a_message_that_was_cut_off_is_none(ends: tuple[Channel, Channel]) -> None:
    ends[0]._end.sendall(b"\x09" + bytes(7) + b"half")
    ends[0].close()
    with pytest.raises(ChannelClosed):
        ends[1].receive()


def test_silence_is_no_longer_when_a_message_is_there(ends: tuple[Channel, Channel]) -> None:
    ends[0].send("hello")
    assert not ends[1].is_silent
    assert ends[1].receive() == "hello"
    assert ends[1].is_silent
