"""Settings that a runner pins."""

from __future__ import annotations

import itertools
import threading
import time
import weakref

import pytest

from dagflow.spark.connection.pins import PinnedSettings


class Conf:
    """Settings of a session that answers more and more slowly: a window that asks later sees what an earlier one has set."""

    def __init__(self, **settings: str) -> None:
        self.settings = settings
        self.calls = itertools.count()

    def get(self, key: str, default: str | None) -> str | None:
        time.sleep(0.03 * next(self.calls))
        return self.settings.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.settings[key] = value

    def unset(self, key: str) -> None:
        del self.settings[key]


class Session:
    def __init__(self, **settings: str) -> None:
        self.conf = Conf(**settings)


def test_what_a_session_has_is_set_back() -> None:
    spark, pins = Session(number="1", rules="mine"), PinnedSettings({"rules", "more"})
    pins.pin(spark, {"number": "2", "rules": "ours", "more": "too", "new": "x"})
    pins.pin(spark, {"number": "3", "later": "y"})
    assert spark.conf.settings == {"number": "2", "rules": "mine,ours", "more": "too", "new": "x", "later": "y"}
    pins.unpin()
    pins.unpin()
    assert spark.conf.settings == {"number": "1", "rules": "mine"}


def test_windows_that_pin_at_the_same_time_leave_nothing_and_find_all_set() -> None:
    spark, pins, seen = Session(), PinnedSettings({"rules"}), []
    start = threading.Barrier(3)

    def window() -> None:
        start.wait(10)
        pins.pin(spark, {"rules": "ours", "number": "1"})
        seen.append(dict(spark.conf.settings))

    windows = [threading.Thread(target=window) for _ in range(3)]
    for each in windows:
        each.start()
    for each in windows:
        each.join(10)
    assert seen == [{"rules": "ours", "number": "1"}] * 3
    pins.unpin()
    assert spark.conf.settings == {}


def test_what_another_runner_needs_stays() -> None:
    spark, one, two = Session(rules="mine"), PinnedSettings({"rules"}), PinnedSettings({"rules"})
    one.pin(spark, {"rules": "ours", "number": "1"})
    two.pin(spark, {"rules": "ours"})
    assert spark.conf.settings == {"rules": "mine,ours", "number": "1"}
    one.unpin()
    assert spark.conf.settings == {"rules": "mine,ours"}
    two.unpin()
    assert spark.conf.settings == {"rules": "mine"}


def test_a_setting_that_cannot_be_set_back_is_forgotten_and_so_is_its_session() -> None:
    spark, pins = Session(), PinnedSettings()
    pins.pin(spark, {"number": "1"})
    spark.conf.settings.clear()  # to unset it fails
    pins.unpin()
    pins.pin(spark, {"number": "2"})
    assert spark.conf.settings == {"number": "2"}
    pins.unpin()
    session = weakref.ref(spark)
    del spark
    assert session() is None


def test_a_setting_that_could_not_be_set_is_set_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    spark, pins = Session(number="1"), PinnedSettings()
    with monkeypatch.context() as patch:
        patch.setattr(spark.conf, "set", refuse)
        with pytest.raises(ConnectionError):
            pins.pin(spark, {"number": "2"})
    pins.pin(spark, {"number": "2"})
    assert spark.conf.settings == {"number": "2"}
    pins.unpin()
    assert spark.conf.settings == {"number": "1"}


def refuse(key: str, value: str) -> None:
    raise ConnectionError(key)
