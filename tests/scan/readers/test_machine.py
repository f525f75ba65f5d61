"""The table of states in the docstring of Scan, row by row; and the promises about closing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.scan import Scan


@attrs.define(eq=False)
class Reader:
    """A reader that notes what is done with it. `batches`: what it gives; an exception among them is raised."""

    name: str
    log: list[str]
    opens: Any = True
    batches: list[Any] = attrs.field(factory=list)
    schema_version: int = 0
    closes: Any = None

    def open(self) -> bool:
        self.log.append(f"open {self.name}")
        if isinstance(self.opens, Exception):
            raise self.opens
        return bool(self.opens)

    def next(self) -> Any:
        self.log.append(f"next {self.name}")
        found = self.batches.pop(0) if self.batches else None
        if isinstance(found, Exception):
            raise found
        return found

    def empty(self) -> Any:
        return f"empty {self.name}"

    def close(self) -> None:
        self.log.append(f"close {self.name}")
        if isinstance(self.closes, Exception):
            raise self.closes


def scan_of(*readers: Reader) -> Scan[Any]:
    left = list(readers)
    return Scan(lambda: left.pop(0) if left else None)


def test_readers_are_opened_drained_and_closed_one_after_the_other() -> None:
    log: list[str] = []
    scan = scan_of(Reader("a", log, batches=[1, 2]), Reader("b", log, batches=[3]))
    assert scan.state == "start"
    assert list(scan.batches()) == [1, 2, 3]
    assert (scan.state, scan.delivered) == ("waiting", 3)
    assert log == ["open a", "next a", "next a", "next a", "close a", "open b", "next b", "next b", "close b"]


def test_a_reader_is_made_after_the_one_before_is_closed() -> None:
    log: list[str] = []

    def make() -> Callable[[], Reader | None]:
        names = iter("ab")

        def next_reader() -> Reader | None:
            name = next(names, None)
            log.append(f"make {name}")
            return None if name is None else Reader(name, log, batches=[1])

        return next_reader

    list(Scan(make()).batches())
    assert [entry for entry in log if not entry.startswith("next")] == [
        *("make a", "open a", "close a", "make b", "open b", "close b", "make None")
    ]


def test_a_soft_skip_is_counted_and_closed() -> None:
    log: list[str] = []
    scan = scan_of(Reader("a", log, opens=False), Reader("b", log, batches=[1]))
    assert list(scan.batches()) == [1]
    assert scan.skipped == 1
    assert log[:3] == ["open a", "close a", "open b"]


def test_waiting_goes_on_when_there_are_readers_again() -> None:
    log: list[str] = []
    left = [Reader("a", log, batches=[1])]
    scan: Scan[Any] = Scan(lambda: left.pop() if left else None)
    assert list(scan.batches()) == [1]
    left.append(Reader("b", log, batches=[2]))
    assert list(scan.batches()) == [2]
    assert scan.state == "waiting"


def test_an_all_empty_scan_tells_the_first_schema_that_was_known() -> None:
    log: list[str] = []
    scan = scan_of(Reader("a", log), Reader("b", log, schema_version=1), Reader("c", log, schema_version=1))
    assert [(batch, scan.state) for batch in scan.finish()] == [("empty b", "empty")]
    assert scan.state == "end"
    assert list(scan.finish()) == list(scan.batches()) == []


@pytest.mark.parametrize("batches", [[], [1]])
def test_nothing_is_told_where_no_schema_is_known_or_a_batch_has_told_it(batches: list[Any]) -> None:
    scan = scan_of(Reader("a", [], batches=list(batches), schema_version=len(batches)))
    assert list(scan.finish()) == batches
    assert scan.state == "end"


@pytest.mark.parametrize("doing", ["opens", "batches", "closes"])
def test_an_exception_fails_the_scan_and_no_other_reader_is_made(doing: str) -> None:
    log: list[str] = []
    error = OSError("gone")
    value: Any = [error] if doing == "batches" else error
    scan = scan_of(Reader("a", log, **{doing: value}), Reader("b", log))
    with pytest.raises(OSError, match="gone"):
        list(scan.batches())
    assert scan.state == "failed"
    assert log.count("close a") == 1
    assert "open b" not in log
    with pytest.raises(RuntimeError, match="the scan is failed"):
        list(scan.batches())
    scan.close()
    assert log.count("close a") == 1


def test_an_error_of_closing_after_an_error_is_a_note_of_the_first() -> None:
    scan = scan_of(Reader("a", [], batches=[ValueError("first")], closes=OSError("second")))
    with pytest.raises(ValueError, match="first") as raised:
        list(scan.batches())
    assert raised.value.__notes__ == ["closing the reader failed, too: second"]


def test_closing_in_the_midst_closes_the_reader_at_hand_once() -> None:
    log: list[str] = []
    scan = scan_of(Reader("a", log, batches=[1, 2]), Reader("b", log))
    next(scan.batches())
    scan.close()
    scan.close()
    assert log == ["open a", "next a", "close a"]
    with pytest.raises(RuntimeError, match="the scan is closed"):
        list(scan.finish())


readers = st.builds(
    lambda opens, batches, closes: {"opens": opens, "batches": batches, "closes": closes},
    st.sampled_from([True, True, False, OSError()]),
    st.lists(st.sampled_from([1, 2, OSError()]), max_size=3),
    st.sampled_from([None, None, OSError()]),
)


@given(st.lists(readers, max_size=4), st.integers(0, 8))
def test_whatever_happens_every_reader_that_was_made_is_closed_once(plans: list[dict[str, Any]], taken: int) -> None:
    log: list[str] = []
    scan = scan_of(*(Reader(str(n), log, **{**plan, "batches": list(plan["batches"])}) for n, plan in enumerate(plans)))
    try:
        for number, _ in enumerate(scan.finish()):
            if number == taken:
                break
    except OSError:
        pass
    with contextlib.suppress(OSError):
        scan.close()
    opened = [entry.split()[1] for entry in log if entry.startswith("open")]
    closed = [entry.split()[1] for entry in log if entry.startswith("close")]
    assert closed == opened
