from __future__ import annotations

import threading

import pytest

from dagflow.testing import FakeClock


def test_only_sleep_and_advance_move_it() -> None:
    clock = FakeClock(now=10.0)
    assert (clock.now(), clock.monotonic()) == (10.0, 0.0)
    clock.sleep(1.5)
    clock.advance(1)
    assert (clock.now(), clock.monotonic(), clock.slept) == (12.5, 2.5, [1.5])


def test_it_never_goes_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        FakeClock().sleep(-1)


def test_threads_lose_no_step() -> None:
    clock = FakeClock()
    threads = [threading.Thread(target=lambda: [clock.sleep(1) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.monotonic() == 2000
    assert len(clock.slept) == 2000
