"""Two applications in a chain, launched, crashed and started over at random, against a plain list."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from dagflow import launch
from dagflow.errors import InfrastructureError
from dagflow.ledger import Ledger, fold
from dagflow.testing import FakeClock
from operators.files.errors import DatasetMissing, DatasetReplaced
from tests.conformance.faults.derived import first, second
from tests.conformance.faults.dying import Deadly, Failing, dies, watched
from tests.conformance.faults.oracle import rows_of, wrong

WINDOWS = st.none() | st.integers(1, 3)
TOUCH = st.integers(0, 250)  # a launch that has something to do touches about as many files
LINES = st.lists(st.booleans(), max_size=6)  # whether each is kept


class Chain(RuleBasedStateMachine):
    """The model is the list of kept lines, and the newest time of a file."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dagflow-machine-"))
        self.source = self.folder / "in"
        self.source.mkdir()
        self.clock = FakeClock()
        self.lines: list[str] = []
        self.files = 0
        self.watermark: int | None = None
        self.number = 0
        self.committed = {"first": Counter[str](), "second": Counter[str]()}
        self.is_replaced = False  # the first has been started over, the second not yet
        self.arrive([True, False, True])

    @property
    def one(self) -> Path:
        return self.folder / "first"

    @property
    def two(self) -> Path:
        return self.folder / "second"

    def launch_first(self, **options: Any) -> None:
        launch(first(self.source, self.one), **self.options(options))

    def launch_second(self, **options: Any) -> None:
        launch(second({"lines": self.one}, self.two), **self.options(options))

    def options(self, more: dict[str, Any]) -> dict[str, Any]:
        return {"runner": "local", "progress": "none", "durability": "process", "clock": self.clock, **more}

    @rule(kept=LINES)
    def arrive(self, kept: list[bool]) -> None:
        """A file comes; an empty one moves nothing but the watermark."""
        texts = []
        for is_kept in kept:
            self.number += 1
            texts.append(f"{'' if is_kept else '.'}l{self.number}")
        self.lines += [text for text in texts if text[0] != "."]
        self.files += 1
        self.watermark = 1_000_000 + self.files
        path = self.source / f"{self.files:04d}.txt"
        path.write_text("".join(f"{text}\n" for text in texts))
        os.utime(path, ns=(self.watermark * 1000, self.watermark * 1000))

    @rule(windows=WINDOWS, seconds=st.floats(0, 3600))
    def run_first(self, windows: int | None, seconds: float) -> None:
        self.clock.advance(seconds)
        self.launch_first(max_windows=windows)

    @rule(windows=WINDOWS, touch=TOUCH)
    def crash_first(self, windows: int | None, touch: int) -> None:
        dies(lambda: self.launch_first(max_windows=windows), Deadly(str(self.folder), touch))

    @precondition(lambda self: not self.is_replaced)
    @rule(windows=WINDOWS)
    def run_second(self, windows: int | None) -> None:
        try:
            self.launch_second(max_windows=windows)
        except DatasetMissing:
            assert not rows_in(self.one)

    @precondition(lambda self: not self.is_replaced)
    @rule(windows=WINDOWS, touch=TOUCH)
    def crash_second(self, windows: int | None, touch: int) -> None:
        try:
            dies(lambda: self.launch_second(max_windows=windows), Deadly(str(self.folder), touch))
        except DatasetMissing:
            assert not rows_in(self.one)

    @rule(touch=TOUCH, code=st.sampled_from([errno.EBUSY, errno.ENOSPC, errno.EROFS]), for_good=st.booleans())
    def a_disk_that_fails(self, touch: int, code: int, for_good: bool) -> None:
        with watched(Failing(str(self.folder), touch, code, for_good)), contextlib.suppress(InfrastructureError):
            self.launch_first()

    @rule(touch=TOUCH, again=TOUCH)
    def start_over(self, touch: int, again: int) -> None:
        """The first begins anew, and dies at that; any launch resumes from there. It is another dataset then."""
        before = identity(self.one)
        dies(lambda: self.launch_first(fresh=True), Deadly(str(self.folder), touch))
        dies(self.launch_first, Deadly(str(self.folder), again))
        self.launch_first()
        self.committed["first"] = Counter()
        if identity(self.one) != before and identity(self.two) is not None:
            self.is_replaced = True

    @precondition(lambda self: self.is_replaced)
    @rule(touch=TOUCH)
    def start_the_second_over(self, touch: int) -> None:
        try:
            self.launch_second()
        except DatasetReplaced:
            dies(lambda: self.launch_second(fresh=True), Deadly(str(self.folder), touch))
            try:
                self.launch_second()
            except DatasetReplaced:  # it died before it had noted that it starts over
                self.launch_second(fresh=True)
        self.committed["second"] = Counter()
        self.is_replaced = False

    @invariant()
    def what_is_committed_stays_and_is_right(self) -> None:
        for name, folder in (("first", self.one), ("second", self.two)):
            if identity(folder) is None or (name == "second" and self.is_replaced):
                continue
            rows = rows_in(folder)
            lines = self.lines if name == "first" else [line.upper() for line in self.lines]
            assert not rows - Counter(lines), f"{name}: rows that are nobody's, or doubled"
            assert not self.committed[name] - rows, f"{name}: rows that were committed are gone"
            self.committed[name] = rows
            ledger = Ledger.open(str(folder))
            entries = list(ledger.entries())
            assert ledger.resume() == fold(entries)
            state = ledger.resume()
            assert state.next_offset == rows.total()
            if name == "first":
                assert state.watermark is None or (self.watermark is not None and state.watermark <= self.watermark)
            else:
                self.is_a_prefix(rows, state)

    def is_a_prefix(self, rows: Counter[str], state: Any) -> None:
        """The second has exactly the rows of the first up to where it stands."""
        for taken in state.inputs.values():
            count = 0 if taken.last_offset is None else taken.last_offset + 1
            above = Ledger.open(str(self.one))
            at = taken.last_block
            expected = rows_in(self.one, above, at.seq) if at is not None else Counter[str]()
            assert rows == Counter(line.upper() for line in expected.elements())
            assert count == rows.total()

    def teardown(self) -> None:
        if not hasattr(self, "folder"):
            return

        def settle() -> None:
            self.launch_first()
            try:
                self.launch_second()
            except DatasetReplaced:
                assert self.is_replaced
                self.launch_second(fresh=True)

        expected = {self.one: self.lines, self.two: [line.upper() for line in self.lines]}
        assert wrong(expected, settle, {self.two: [self.one]}) == []
        marks = [Ledger.open(str(folder)).resume().watermark for folder in (self.one, self.two)]
        assert marks == [self.watermark, self.watermark]
        shutil.rmtree(self.folder)


def identity(folder: Path) -> str | None:
    """The id of the dataset there, None if there is none."""
    ledger = Ledger.open(str(folder))
    return None if ledger.refresh() is None else ledger.seed().dataset_id


def rows_in(folder: Path, ledger: Ledger | None = None, at: int | None = None) -> Counter[str]:
    """The rows of the dataset there, up to an entry."""
    if ledger is not None:
        from dagflow.ledger import read_dataset

        return Counter(read_dataset(str(folder), as_of=at).to_table().column("value").to_pylist())
    has_schema = identity(folder) is not None and Ledger.open(str(folder)).resume().at is not None
    return rows_of(folder) if has_schema else Counter()


@pytest.mark.full
@pytest.mark.parametrize(
    ("examples", "steps"), [pytest.param(5, 50), pytest.param(60, 100, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])]
)
def test_all_rows_are_there(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Chain,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=examples < 10,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
            phases=[Phase.generate] if examples < 10 else list(Phase),  # to make a failing one smaller takes minutes
        ),
    )
