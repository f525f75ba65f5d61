"""Threads for jobs."""

from __future__ import annotations

import threading

import pytest

from dagflow.spark.threads import JobThreads


def test_an_idle_thread_is_used_again() -> None:
    threads = JobThreads("test")
    names = [threads.submit(lambda: threading.current_thread().name).result() for _ in range(5)]
    threads.close()
    assert names == ["test-1"] * 5


def test_calls_run_side_by_side() -> None:
    threads = JobThreads("test")
    both = threading.Barrier(2)
    calls = [threads.submit(lambda: both.wait(10)) for _ in range(2)]
    assert {call.result(10) for call in calls} == {0, 1}
    threads.close()


def test_errors_reach_who_waits_and_the_thread_goes_on() -> None:
    threads = JobThreads("test")
    call = threads.submit(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        call.result(10)
    assert threads.submit(lambda: threading.current_thread().name).result(10) == "test-1"
    threads.close()


def test_closed_threads_end() -> None:
    threads = JobThreads("test")
    thread = threads.submit(threading.current_thread).result(10)
    assert thread.daemon
    threads.close()
    thread.join(10)
    assert not thread.is_alive()
