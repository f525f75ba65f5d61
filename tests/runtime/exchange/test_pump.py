from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from dagflow.runtime.exchange.pump import AHEAD, Pump


def test_everything_comes_in_its_order() -> None:
    assert list(Pump(lambda send: [send(n) for n in range(1000)])) == list(range(1000))


def test_what_the_body_raises_comes_behind_what_it_sent() -> None:
    def body(send: Callable[[int], None]) -> None:
        send(1)
        raise SystemExit(3)

    items = iter(Pump(body))
    assert next(items) == 1
    with pytest.raises(SystemExit):
        next(items)


def test_the_body_does_not_run_far_ahead() -> None:
    sent: list[int] = []

    def body(send: Callable[[int], None]) -> None:
        for number in range(100):
            send(number)
            sent.append(number)

    items = iter(Pump(body))
    next(items)
    time.sleep(0.05)
    assert len(sent) <= AHEAD + 2
    assert len(list(items)) == 99


def test_a_body_that_nobody_listens_to_ends() -> None:
    ended = threading.Event()

    def body(send: Callable[[int], None]) -> None:
        try:
            while True:
                send(1)
        finally:
            ended.set()

    items = iter(Pump(body))
    next(items)
    items.close()  # type: ignore[attr-defined]
    assert ended.wait(10)
