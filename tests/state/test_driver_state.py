"""State of the driver's operators: saved with each window's plan, given back, and what code that has changed since finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputOperator, MapState, Operator, OutputPort, State, launch
from dagflow.errors import PlanMismatch, SegmentDamaged, SegmentMissing, StateNotPlain
from dagflow.model.types.plain_data import decode, dumps, encode, loads
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.state import MapLog, StateRef
from dagflow.state.driver_state import DriverStates, check_left, types_of
from dagflow.state.task_states import encoded_states, publish_states
from dagflow.storage.store import Store
from dagflow.testing.stores import CountingStore
from operators import RecordWriter


@attrs.define
class Point:
    x: int
    y: int = 0


def made(**declared: Any) -> Any:
    return type("Source", (InputOperator,), declared)()


def states(store: Store, **operators: Any) -> DriverStates:
    return DriverStates(operators, MapLog(store))


def plan(kept: DriverStates, window: int = 3) -> WindowPlan:
    """The state that a window leaves, after a journey through its plan."""
    made = WindowPlan(
        window=window,
        items={},
        partitions={},
        places={},
        states=kept.save(window),
        state_types=kept.types(),
        driver=TaskReport("driver", 0),
    )
    return decode(loads(dumps(encode(made, "plan"))), WindowPlan)


def relaunched(before: dict[str, Any], after: dict[str, Any], **values: Any) -> tuple[Any, list[str]]:
    """An operator with other State than the one that left values behind."""
    store = CountingStore()
    old = made(**before)
    for name, value in values.items():
        setattr(old, name, value)
    new = made(**after)
    warnings = states(store, source=new).restore(plan(states(store, source=old)))
    return new, warnings


def test_states_and_maps_come_back() -> None:
    declared = {"at": State(0), "seen": MapState[str, str](), "points": MapState[int, Point](), "none": MapState[str, str]()}
    found, warnings = relaunched(declared, declared, at=5, seen={"a": "1"}, points={7: Point(1, 2)})
    assert warnings == []
    assert (found.at, found.seen, found.points, found.none) == (5, {"a": "1"}, {7: Point(1, 2)}, {})
    assert found.seen.changes().assigned == {}, "it is saved already"


def test_all_maps_of_a_window_are_one_record() -> None:
    store = CountingStore()
    one, other = made(seen=MapState[str, int](), more=MapState[str, int]()), made(seen=MapState[str, int]())
    kept = states(store, one=one, other=other)
    one.seen["a"] = one.more["b"] = other.seen["c"] = 1
    found = kept.save(0)
    assert store.counts["create"] == 1
    assert found["one"]["seen"] == found["one"]["more"] == found["other"]["seen"]
    assert (kept.has_changed("one"), kept.has_changed("other")) == (True, True)
    other.seen["c"] = 2
    assert kept.save(1) != found
    assert (kept.has_changed("one"), kept.has_changed("other")) == (False, True)
    assert kept.save(2) == kept.save(3)
    assert store.counts["create"] == 2


def test_what_a_plan_says_of_a_map_does_not_grow_with_it() -> None:
    store = CountingStore()
    source = made(seen=MapState[str, str]())
    kept = states(store, source=source)
    sizes = []
    for window in range(3):
        source.seen.update({f"{window} {n}": "x" for n in range(10**window)})
        sizes.append(len(json.dumps(kept.save(window))))
    assert max(sizes) < 300


@pytest.mark.parametrize(
    ("before", "after", "value", "becomes"),
    [
        (State(0), State[int](0), 4, 4),
        (State(0), State(0.5), 4, 4),
        (State[int](0), State[int | None](None), 4, 4),
        (State(0), State[Any](None), 4, 4),
        (State[dict[str, int]](factory=dict), MapState[str, int](), {"a": 1}, {"a": 1}),
        (MapState[str, int](), State[dict[str, int]](factory=dict), {"a": 1}, {"a": 1}),
        (MapState[str, int](), MapState[str, int | None](), {"a": 1}, {"a": 1}),
        (MapState[str, Any](), MapState[str, Point](), {"a": {"x": 1, "y": 2}}, {"a": Point(1, 2)}),
        (MapState[str, int](), State[dict[str, int]](factory=dict), {}, {}),
    ],
)
def test_a_state_whose_value_fits_its_new_type_goes_on(before: Any, after: Any, value: Any, becomes: Any) -> None:
    found, warnings = relaunched({"kept": before}, {"kept": after}, kept=value)
    assert (found.kept, warnings) == (becomes, [])


@pytest.mark.parametrize(
    ("before", "after", "value", "message"),
    [
        (State(0), State(""), 4, "was int after window 3, and now is str: it holds 4"),
        (State(0), State[list[int]](factory=list), 4, "was int after window 3, and now is list[int]: it holds 4"),
        (
            State[dict[str, int]](factory=dict),
            MapState[str, str](),
            {"a": 1},
            "was dict[str, int] after window 3, and now is MapState[str, str]: it holds 'a': 1",
        ),
        (
            MapState[str, int](),
            MapState[int, int](),
            {"a": 1},
            "was MapState[str, int] after window 3, and now is MapState[int, int]: it holds 'a': 1",
        ),
        (
            State[Any](None),
            State[Point](Point(0)),
            {"x": 1},
            "was Any after window 3, and now is Point: it cannot be read as such (KeyError: 'y')",
        ),
        (MapState[str, int](), State(0), {"a": 1}, "was MapState[str, int] after window 3, and now is int: it"),
    ],
)
def test_a_state_of_another_type_is_refused(before: Any, after: Any, value: Any, message: str) -> None:
    with pytest.raises(PlanMismatch) as caught:
        relaunched({"kept": before}, {"kept": after}, kept=value)
    assert f"memory://store cannot be continued: State 'kept' of operator 'source' {message}" in str(caught.value)


def test_a_new_state_begins_with_its_initial_value() -> None:
    found, warnings = relaunched({"at": State(0)}, {"at": State(0), "new": State(9), "map": MapState[str, int]()}, at=5)
    assert (found.at, found.new, found.map, warnings) == (5, 9, {}, [])


def test_a_state_that_is_gone_is_dropped_and_told() -> None:
    found, warnings = relaunched(
        {"at": State(0), "old": State("x"), "map": MapState[str, int]()}, {"at": State(0)}, at=5, map={"a": 1}
    )
    assert found.at == 5
    assert warnings == [
        "State that window 3 has left is gone from the code, and is dropped: 'old' of operator 'source' (str), "
        "'map' of operator 'source' (MapState[str, int])"
    ]


def test_a_map_that_was_dropped_begins_anew_when_it_is_declared_again() -> None:
    store = CountingStore()
    with_map = {"at": State(0), "map": MapState[str, int]()}
    first = made(**with_map)
    first.map["old"] = 1
    left = plan(states(store, source=first), 0)
    second = states(store, source=made(at=State(0)))
    second.restore(left)
    left = plan(second, 1)
    third = made(**with_map)
    kept = states(store, source=third)
    assert kept.restore(left) == []
    assert third.map == {}
    third.map["new"] = 2
    last = made(**with_map)
    states(store, source=last).restore(plan(kept, 2))
    assert last.map == {"new": 2}


def test_what_is_not_plain_is_named() -> None:
    operator = made(seen=MapState[str, Any]())
    operator.seen["a"] = {1, 2}
    with pytest.raises(StateNotPlain, match="MapState 'seen' of operator 'source' holds a set"):
        states(CountingStore(), source=operator).save(0)


# Operators in tasks


def left_by_tasks(before: dict[str, Any], after: dict[str, Any], *values: dict[str, Any]) -> list[str]:
    store = CountingStore()
    left: list[StateRef] = []
    for own in values:
        old = type("Task", (Operator,), before)()
        for name, value in own.items():
            setattr(old, name, value)
        left.append(publish_states(store, 0, encoded_states(old, "task"), ()))
    last = attrs.evolve(plan(states(store)), state_types=types_of({"task": type("Task", (Operator,), before)()}))
    return check_left({"task": type("Task", (Operator,), after)()}, last, {"task": left}, store)


def test_what_partitions_have_left_is_looked_at_when_its_type_has_changed() -> None:
    count, seen = State(0, merge=sum), State[dict[str, int]](factory=dict, merge=max)
    large = {"count": 2, "seen": {f"{n}": n for n in range(2000)}}
    assert left_by_tasks({"count": count, "seen": seen}, {"count": count, "seen": seen}, large) == []
    fits = {"count": State[int | None](None, merge=max), "seen": State[dict[str, int | str]](factory=dict, merge=max)}
    assert left_by_tasks({"count": count, "seen": seen}, fits, large, {"count": 3}) == []
    assert left_by_tasks({"count": count, "seen": seen}, {"count": count}, large) == [
        "State that window 3 has left is gone from the code, and is dropped: 'seen' of operator 'task' (dict[str, int])"
    ]
    with pytest.raises(PlanMismatch, match=r"State 'seen' of operator 'task' was dict\[str, int\] after window 3, and now is"):
        left_by_tasks({"seen": seen}, {"seen": State[dict[str, str]](factory=dict, merge=max)}, {}, {"seen": {"a": 1}})
    for before in (seen, MapState[str, int]()):
        with pytest.raises(PlanMismatch, match=r"and now is MapState\[str, int\]: its partitions saved it whole, not by key"):
            left_by_tasks({"seen": before}, {"seen": MapState[str, int]()}, {"seen": {"a": 1}})
    with pytest.raises(PlanMismatch, match="State 'count' of operator 'task' was int after window 3, and now is str: it holds 4"):
        left_by_tasks({"count": count}, {"count": State("", merge=max)}, {"count": 4})


# In a run


@attrs.define
class Counting(InputOperator):
    """Counts to `last`, one number a window; knows them all, and that it does."""

    last: int = 5

    output = OutputPort[str]()
    known = MapState[int, str]()

    def setup(self, context: Any) -> None:
        self._context = context

    def emit_tuples(self) -> None:
        if not self.is_exhausted():
            number = len(self.known)
            assert sorted(self.known) == list(range(number))
            self.known[number] = str(number)
            self.output.emit(str(number))
            self._context.close_window()

    def is_exhausted(self) -> bool:
        return len(self.known) >= self.last


def run(folder: Path, source: Any, **options: Any) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        numbers = dag.add_operator("numbers", source)
        dag.add_stream("lines", numbers.output, dag.add_operator("out", RecordWriter[str](str(folder))).input)

    return launch(populate_dag, runner="local", **options).report


def lines(folder: Path) -> list[str]:
    return [line for part in sorted(folder.glob("part-*")) for line in part.read_text().splitlines()]


def test_launches_go_on_from_the_map_that_the_last_one_has_left(tmp_path: Path) -> None:
    for last in (2, 3, 3, 70):
        run(tmp_path, Counting(last))
        assert lines(tmp_path) == [str(n) for n in range(last)]
    segments = list((tmp_path / "_dagflow" / "state").iterdir())
    assert len(segments) < 70, "segments that later ones have taken the place of are removed"


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_damaged_segment_is_named(tmp_path: Path, damage: str) -> None:
    run(tmp_path, Counting(3))
    victim = sorted((tmp_path / "_dagflow" / "state").iterdir())[1]
    if damage == "missing":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes().replace(b"1", b"2"))
    with pytest.raises(SegmentMissing if damage == "missing" else SegmentDamaged, match=victim.name):
        run(tmp_path, Counting(5))
    assert lines(tmp_path) == ["0", "1", "2"]
    run(tmp_path, Counting(2), fresh=True)
    assert lines(tmp_path) == ["0", "1"]
    assert len(list((tmp_path / "_dagflow" / "state").iterdir())) == 2


def test_what_the_code_has_no_more_is_told_as_a_warning(tmp_path: Path) -> None:
    class Before(Counting):
        old = State("x")

    Before.__qualname__ = Counting.__qualname__
    run(tmp_path, Before(2))
    report = run(tmp_path, Counting(3))
    told = "State that window 1 has left is gone from the code, and is dropped: 'old' of operator 'numbers' (str)"
    assert told in report.warnings
    assert not run(tmp_path, Counting(4)).warnings[1:]  # but for `last`, which has changed
    assert lines(tmp_path) == ["0", "1", "2", "3"]
