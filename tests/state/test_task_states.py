"""State of operators in tasks: merged as partitions come and go, the decision its checkpoint, and nothing of it left over."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG, InputPort, Operator, OutputPort, State
from dagflow.errors import OperatorFailed, PlanMismatch, StateLost, StateNotPlain
from dagflow.launching.launch import launch
from dagflow.local.runner import LocalRunner
from dagflow.runtime.events import Event, WindowDecided, WindowPlanned, WindowStarted
from dagflow.state import PartitionStates, StateRef, task_states
from dagflow.state.references import predecessors, states_after
from dagflow.state.task_states import publish_states, read_states, sweep_attempts, sweep_replaced
from dagflow.storage import MemoryStore
from dagflow.testing import Window, run_dag, run_operator
from tests.launching.numbers_app import Given, Sizer, Total, application, decisions, joined, kept, objects, run
from tests.runtime.windows.test_loop import Troubled
from tests.tiers import examples

NUMBERS = st.lists(st.integers(-9, 9), max_size=6)


@given(st.lists(NUMBERS, max_size=6), st.lists(st.integers(1, 5), min_size=1, max_size=6))
@settings(max_examples=examples(40))
def test_merged_states_are_those_of_one_partition(windows: list[list[int]], table: list[int]) -> None:
    """Whatever the windows and the numbers of partitions: sums, maxima and bags are those of one, after every window."""
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), windows, table)
        seen: list[int] = []
        filled = [window for window in windows if window]
        decided = decisions(Path(folder))
        assert len(decided) == len(filled)
        for window, decision in zip(filled, decided, strict=True):
            seen += window
            for name, numbers in (("positive", [n for n in seen if n >= 0]), ("negative", [n for n in seen if n < 0])):
                states = kept(Path(folder), decision, name)
                assert sum(state["total"] for state in states) == sum(numbers)
                assert max((state["most"] for state in states if state["most"] is not None), default=None) == max(
                    numbers, default=None
                )
                assert sorted(n for state in states for n in state["seen"]) == sorted(numbers)


def _read(states: PartitionStates) -> dict[str, list[dict[str, Any]]]:
    return {name: [read_states(MemoryStore(), name, ref) for ref in refs] for name, refs in states.items()}


class Careless(Total):
    most = State[int | None](None, merge=max)


def test_merge_gets_initial_values_too_and_what_it_raises_is_the_operators_error() -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.raises(OperatorFailed) as caught:
        run(Path(folder), [[1, 2], [3]], (1, 1, 3), Careless)
    assert (caught.value.operator, caught.value.doing, caught.value.window) == ("positive", "merge of State 'most'", 1)
    assert caught.value.error.startswith("TypeError: '>' not supported")


@given(st.integers(0, 20), st.integers(1, 20))
def test_every_predecessor_goes_to_one_partition(before: int, now: int) -> None:
    refs = [StateRef(str(number), 0) for number in range(before)]
    given = [predecessors({"o": refs}, ["o", "new"], partition, now) for partition in range(now)]
    assert sorted(int(ref.hash) for found in given for ref in found.get("o", [])) == list(range(before))
    for partition, found in enumerate(given):
        numbers = [int(ref.hash) for ref in found.get("o", [])]
        assert numbers == sorted(numbers)
        assert all(number % now == partition for number in numbers)
        assert "new" not in found


def test_a_window_without_items_for_a_stage_carries_its_states(tmp_path: Path) -> None:
    run(tmp_path, [[1, 2, 3], [-1], [-2], [4]], (1, 2, 3, 3))
    totals = [[state["total"] for state in kept(tmp_path, decision)] for decision in decisions(tmp_path)]
    assert totals[:3] == [[1, 2, 3]] * 3
    assert totals[3] == [1 + 3 + 4, 2]


class TestLaterLaunches:
    def test_go_on_with_what_the_last_decision_says(self, tmp_path: Path) -> None:
        windows = [[1, 2, -3], [4], [-5], [6, 7, 8], [9, -1]]
        run(tmp_path / "whole", windows, (2, 1, 3))
        for _ in windows:
            run(tmp_path / "parts", windows, (2, 1, 3), max_windows=1)
        whole, parts = decisions(tmp_path / "whole"), decisions(tmp_path / "parts")
        assert len(parts) == len(windows)
        assert [decision.partition_states for decision in parts] == [decision.partition_states for decision in whole]

    @pytest.mark.full
    def test_give_a_window_that_was_planned_the_same_states_again(self, tmp_path: Path) -> None:
        """Leftovers of an undecided window from an earlier launch do not count."""
        windows = [[1], [2], [3]]
        began: list[list[dict[str, Any]]] = []

        def watch(job: Any, n: int) -> BaseException | None:
            began.append([_read(task.start.states) for task in job.tasks])
            if job.window == 1:
                LocalRunner().start(job)  # its tasks report, and are lost then
                return RuntimeError("lost")
            return None

        for _ in range(2):
            with pytest.raises(Exception, match="lost"):
                launch(application(windows), runner=Troubled(watch), run_folder=str(tmp_path), window_attempts=2)
        states = [{"positive": [{"total": 1, "most": 1, "seen": [1]}]}]
        assert began == [[{}], states, states, states, states]
        run(tmp_path, windows)
        assert [kept(tmp_path, decision)[0]["seen"] for decision in decisions(tmp_path)] == [[1], [1, 2], [1, 2, 3]]

    def test_of_code_with_a_new_state_begin_it_anew(self, tmp_path: Path) -> None:
        class More(Total):
            count = State(0, merge=sum)

            def end_window(self) -> None:
                self.count += 1

        More.__qualname__ = "Total"
        run(tmp_path, [[1], [2]], max_windows=1)
        run(tmp_path, [[1], [2]], (1,), More)
        assert kept(tmp_path, decisions(tmp_path)[-1]) == [{"total": 3, "most": 2, "seen": [1, 2], "count": 1}]

    def test_of_code_without_state_say_so(self, tmp_path: Path) -> None:
        @attrs.define
        class Forgets(Operator):
            input = InputPort[int]()

            @input.process
            def each(self, number: int) -> None: ...

        Forgets.__qualname__ = "Total"
        run(tmp_path, [[1], [-1]], max_windows=1)
        told = run_dag(application([[1], [-1]], (1,), Forgets), run_folder=str(tmp_path)).warnings
        assert told == ["operator 'positive' no longer keeps State: what it kept goes with the next window"]
        assert decisions(tmp_path)[-1].partition_states == {}

    @pytest.mark.parametrize(
        ("declared", "reason"),
        [
            (State("", merge=max), "was int after window 0, and now is str: it holds 3"),
            (State[float](0.0, merge=sum), None),
            (State[int | None](None, merge=sum), None),
            (State[list[int]](factory=list, merge=joined), "was int after window 0, and now is list\\[int\\]: it holds 3"),
            (State[dict[str, int]](factory=dict, merge=max), "now is dict\\[str, int\\]: it cannot be read as such"),
        ],
    )
    def test_of_code_with_another_type_are_refused_unless_the_values_fit(
        self, tmp_path: Path, declared: State[Any], reason: str | None
    ) -> None:
        class Other(Total):
            total = declared  # type: ignore[assignment]

            @Total.input.process
            def each(self, number: int) -> None: ...

        Other.__qualname__ = "Total"
        run(tmp_path, [[1, 2], [3]], max_windows=1)
        if reason is None:
            run(tmp_path, [[1, 2], [3]], (1,), Other)
            assert kept(tmp_path, decisions(tmp_path)[-1])[0]["total"] == 3
        else:
            with pytest.raises(PlanMismatch, match=f"State 'total' of operator 'positive' .*{reason}"):
                run(tmp_path, [[1, 2], [3]], (1,), Other)

    @pytest.mark.parametrize(
        ("before", "after", "reason"),
        [
            (Sizer(), None, "operator 'positive' kept its State in partitions, and runs on the driver now"),
            (None, Sizer(), "operator 'positive' kept its State on the driver, and runs in partitions now"),
        ],
    )
    def test_that_move_an_operator_are_refused(self, tmp_path: Path, before: Any, after: Any, reason: str) -> None:
        def populate_dag(dag: DAG, conf: Any) -> None:
            source = dag.add_operator("given", Given([[1], [2]]))
            operator = dag.add_operator("positive", Total())
            dag.set_attributes(operator, partitioner=before if not again else after)
            dag.add_stream("s", source.output, operator.input)
            show = dag.add_operator("negative", Total())
            dag.add_stream("t", source.negative, show.input)

        again: list[int] = []
        run_dag(populate_dag, run_folder=str(tmp_path), max_windows=1)
        again.append(1)
        with pytest.raises(PlanMismatch, match=reason):
            run_dag(populate_dag, run_folder=str(tmp_path))


def test_tasks_wait_for_the_decision_before_while_planning_goes_ahead(tmp_path: Path) -> None:
    events: list[Event] = []
    runner = Troubled(lambda job, n: None)
    launch(
        application([[1], [2], [3]]), runner=runner, run_folder=str(tmp_path), windows_in_flight=2, subscribers=[events.append]
    )
    told = [(type(event).__name__.removeprefix("Window"), event.window) for event in events if isinstance(event, _LIFE)]
    assert told == [
        ("Planned", 0),
        ("Started", 0),
        ("Planned", 1),
        ("Decided", 0),
        ("Started", 1),
        ("Planned", 2),
        ("Decided", 1),
        ("Started", 2),
        ("Decided", 2),
    ]


_LIFE = (WindowPlanned, WindowStarted, WindowDecided)


class TestObjects:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(task_states, "INLINE", 30)

    @pytest.mark.full
    def test_hold_what_is_large_and_go_when_nothing_refers_to_them(self, tmp_path: Path) -> None:
        """Over 200 windows of which each leaves objects, those stay with which the windows that are kept began or ended."""
        windows = [[n, n + 1, -n] for n in range(200)]
        run(tmp_path, windows, (1, 2, 3), retain_windows=5)
        first, *_, last = kept_ones = decisions(tmp_path)
        named = {ref.name for each in kept_ones for refs in each.partition_states.values() for ref in refs if ref.name}
        others = objects(tmp_path) - named
        assert named <= objects(tmp_path)
        assert {name.partition(".")[0] for name in others} <= {f"task-states/{first.window - 1:010d}"}
        assert 3 * len(kept_ones) <= len(named) + len(others) <= 5 * (len(kept_ones) + 1)
        assert sum(state["total"] for state in kept(tmp_path, last)) == sum(n + n + 1 for n in range(200))

    def test_are_not_written_again_for_what_has_not_changed(self, tmp_path: Path) -> None:
        class Still(Total):
            def end_window(self) -> None:
                self.total, self.most, self.seen = 0, None, list(range(50))

        run(tmp_path, [[1], [2], [3]], (1,), Still)
        (first, *others) = [decision.partition_states["positive"] for decision in decisions(tmp_path)]
        assert [ref.name.partition(".")[0] for ref in first] == ["task-states/0000000000"]
        assert others == [first, first]
        assert objects(tmp_path) == {first[0].name}

    @pytest.mark.parametrize(
        ("damage", "reason"),
        [(Path.unlink, "it is gone"), (lambda p: p.write_text("{}"), "its 2 bytes do not end with a seal: it was cut short")],
    )
    def test_that_are_gone_or_changed_end_the_run(self, tmp_path: Path, damage: Any, reason: str) -> None:
        windows = [list(range(9)), [1], [2]]
        run(tmp_path, windows, max_windows=1)
        (name,) = objects(tmp_path)
        damage(tmp_path / name)
        with pytest.raises(StateLost) as caught:
            run(tmp_path, windows)
        assert (caught.value.operator, caught.value.path, caught.value.reason) == ("positive", f"{tmp_path}/{name}", reason)
        run(tmp_path, windows, fresh=True)
        assert sum(state["total"] for state in kept(tmp_path, decisions(tmp_path)[-1])) == 39

    def test_go_when_a_run_starts_over_and_what_is_the_users_stays(self, tmp_path: Path) -> None:
        run(tmp_path, [list(range(9))])
        (tmp_path / "task-states" / "notes.txt").write_text("mine")
        (name,) = objects(tmp_path) - {"task-states/notes.txt"}
        run(tmp_path, [], fresh=True)
        assert objects(tmp_path) == {"task-states/notes.txt"}
        assert name.startswith("task-states/0000000000.")

    def test_of_attempts_whose_report_came_second_are_swept(self) -> None:
        store = MemoryStore()
        first, second = (publish_states(store, 3, {"seen": "x" * 99 + end}, ()) for end in "ab")
        later = publish_states(store, 4, {"seen": "x" * 99}, ())
        assert read_states(store, "o", second) == {"seen": "x" * 99 + "b"}
        states = states_after({"other": []}, [{"o": first}])
        assert states == {"other": [], "o": [first]}
        sweep_attempts(store, 3, states)
        assert store.names() == sorted([first.name, later.name]), "a window that is not decided is left alone"

    def test_that_a_window_has_replaced_go_with_its_records(self) -> None:
        store = MemoryStore()
        refs = [publish_states(store, window, {"seen": f"{window}" * 99}, ()) for window in range(4)]
        for window, ref in enumerate(refs):
            sweep_attempts(store, window, {"o": [ref]})
        assert store.names() == [ref.name for ref in refs]
        sweep_replaced(store, {window: {"o": [refs[window]]} for window in (0, 1)})
        assert store.names() == [ref.name for ref in refs[1:]], "window 2 begins with what window 1 has left"


def test_what_is_no_plain_data_is_refused_by_name(tmp_path: Path) -> None:
    class Sets(Total):
        numbers = State[Any](None, merge=lambda parts: parts[0])

        def end_window(self) -> None:
            super().end_window()
            self.numbers = {1}

    with pytest.raises(StateNotPlain, match="State 'numbers' of operator 'positive' holds a set"):
        run(tmp_path, [[1]], (1,), Sets)


@attrs.define
class Totals:
    """An attrs class that its declaration does not name as the type."""

    all: int = 0
    last: int | None = None


def totals(parts: list[Totals]) -> Totals:
    return Totals(sum(part.all for part in parts), parts[-1].last)


def test_attrs_classes_come_back_as_what_they_were(tmp_path: Path) -> None:
    class Classes(Total):
        plain = State(Totals(), merge=totals)
        made = State(factory=Totals, merge=totals)

        def end_window(self) -> None:
            assert isinstance(self.plain, Totals)
            assert isinstance(self.made, Totals)
            self.plain = self.made = Totals(self.plain.all + self.total, self.total)

    run(tmp_path, [[1], [2], [3, 4]], (2, 1, 1), Classes)
    assert kept(tmp_path, decisions(tmp_path)[-1])[0]["plain"] == {"all": 1 + 3 + 10, "last": 10}


def test_run_operator_keeps_state_between_windows() -> None:
    class Emits(Total):
        scope = "window"
        output = OutputPort[int]()

        def end_window(self) -> None:
            self.output.emit(self.total)

    assert run_operator(Emits(), {"input": [Window([1, 2]), Window([]), Window([3])]})["output"] == [3, 3, 6]
