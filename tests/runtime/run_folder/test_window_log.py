from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import FileLost, PlanMismatch, RecordDamaged, RecordMisplaced, RecordMissing, WindowIncomplete
from dagflow.model.operator.base import Operator
from dagflow.model.types.plain_data import decode, encode
from dagflow.runtime.run_folder.launch_record import LaunchRecord
from dagflow.runtime.run_folder.progress import progress_of
from dagflow.runtime.run_folder.reports import OperatorFigures, StagedFile, TaskReport, summed
from dagflow.runtime.run_folder.window_log import Decision, WindowLog, WindowPlan
from dagflow.runtime.stage.program import TaskSpec, Work
from dagflow.runtime.windows.commit import decide, roll_forward, sweep
from dagflow.storage import MemoryStore, seal
from dagflow.testing.stores import CountingStore


def plan(window: int = 0, **what: object) -> WindowPlan:
    return attrs.evolve(
        WindowPlan(window=window, items={}, partitions={}, places={}, states={}, driver=TaskReport("driver", 0)), **what
    )


def task(window: int = 0, partition: int = 0, items: int = 1) -> TaskSpec:
    made = tuple(("reader", "in", n) for n in range(items))
    return TaskSpec(window=window, epoch="r", stage="s0", partition=partition, partitions=2, work=Work(items=made))


def staged(folder: Path, name: str, attempt: str, data: bytes = b"x\n") -> StagedFile:
    place = folder / "_dagflow" / "staging"
    place.mkdir(parents=True, exist_ok=True)
    (place / attempt).write_bytes(data)
    return StagedFile("out", str(folder), name, str(place / attempt), len(data), 1)


def test_what_is_published_first_counts() -> None:
    log = WindowLog(MemoryStore())
    first = log.plan(plan(states={"files": {"next": 1}}))
    second = log.plan(plan(states={"files": {"next": 2}}))
    assert first == second == log.read_plan(0)
    assert second.states == {"files": {"next": 1}}
    assert log.read_plan(1) is None
    assert log.windows("plan") == [0]


def test_the_first_report_of_a_task_counts() -> None:
    log = WindowLog(MemoryStore())
    name = task().report_name
    assert log.report(name, TaskReport("s0-0000", 1)).items == 1
    assert log.report(name, TaskReport("s0-0000", 2)).items == 1
    log.forget({0})
    assert log.read_report(name) is None


FIGURES = st.builds(OperatorFigures, *[st.integers(0, 99)] * 4, st.dictionaries(st.text(max_size=3), st.integers(0, 9)))


@given(
    st.dictionaries(st.text(max_size=5), FIGURES),
    st.lists(st.builds(StagedFile, *[st.text(max_size=4)] * 4, st.integers(0), st.integers(0))),
)
def test_reports_come_back_as_they_were(operators: dict[str, OperatorFigures], files: list[StagedFile]) -> None:
    log = WindowLog(MemoryStore())
    report = TaskReport("t", 3, operators, files, {"show": ["a\n", "ß"]})
    log.report("reports/t", report)
    assert log.read_report("reports/t") == report


def test_figures_are_summed() -> None:
    one = {"a": OperatorFigures(1, 2, 3, 4, {"x": 1}, ["e1"]), "b": OperatorFigures(5)}
    other = {"a": OperatorFigures(10, 20, 30, 40, {"x": 2, "y": 3}, ["e2"] * 9)}
    total = summed([one, other])
    assert total["a"] == OperatorFigures(11, 22, 33, 44, {"x": 3, "y": 3}, ["e1", "e2", "e2", "e2", "e2"])
    assert total["b"] == OperatorFigures(5)
    assert one["a"].records_in == 1, "sums are new"


@pytest.mark.parametrize("damage", [b"", b"{", b"{}", b'{"format": 5}', b"[]", b"\xff\n", seal("plan/0000000000", b"{")])
def test_a_damaged_log_is_refused(damage: bytes) -> None:
    store = MemoryStore()
    store.create("plan/0000000000", damage)
    with pytest.raises(RecordDamaged, match=r"memory://store/plan/0000000000 is damaged .*\n.*launch with --fresh"):
        WindowLog(store).read_plan(0)


def test_a_log_of_another_version_is_refused() -> None:
    store = MemoryStore()
    store.create("decision/0000000003", b'{"format":4,"window":3}')
    with pytest.raises(PlanMismatch) as caught:
        WindowLog(store).read_decision(3)
    assert str(caught.value) == (
        "memory://store cannot be continued: it was written by another version of dagflow (format 4, this one reads 5)\n"
        "  help: launch with --fresh to start over, or name another output; "
        "where the folder is an older copy, bring the newest back"
    )


class TestLinks:
    """Each record names those that it builds on; one of another run does not fit."""

    @pytest.fixture
    def store(self) -> MemoryStore:
        store = MemoryStore()
        store.create("app-id", seal("app-id", b"mine"))
        log = WindowLog(store)
        for window in range(3):
            log.plan(plan(window))
            log.decide(Decision(window=window, round="r", files=[], operators={}, notes={}, states={}))
            log.done(window)
        return store

    @pytest.fixture
    def other(self) -> MemoryStore:
        store = MemoryStore()
        store.create("app-id", seal("app-id", b"theirs"))
        log = WindowLog(store)
        for window in range(3):
            log.plan(plan(window))
            log.decide(Decision(window=window, round="theirs", files=[], operators={}, notes={}, states={}))
            log.done(window)
        return store

    def replaced(self, store: MemoryStore, name: str, data: bytes | None) -> WindowLog:
        assert data is not None
        store.discard(name)
        store.create(name, data)
        return WindowLog(store)

    @pytest.mark.parametrize("name", ["plan/0000000000", "plan/0000000002", "decision/0000000002"])
    def test_a_record_of_another_run_is_out_of_place(self, store: MemoryStore, other: MemoryStore, name: str) -> None:
        log = self.replaced(store, name, other.read(name))
        with pytest.raises(RecordMisplaced, match=f"{name} is out of place .it builds on another"):
            (log.read_plan if name.startswith("plan") else log.read_decision)(int(name[-1]))

    def test_a_plan_that_was_exchanged_does_not_fit_its_decision(self, store: MemoryStore, other: MemoryStore) -> None:
        log = self.replaced(store, "plan/0000000001", other.read("plan/0000000001"))
        with pytest.raises(RecordMisplaced, match=r"decision/0000000001 .* builds on another plan/0000000001 than"):
            log.read_decision(1)
        assert WindowLog(store).read_decision(1, alone=True) is not None

    @pytest.mark.parametrize("kind", ["plan", "decision"])
    def test_a_copy_of_the_record_before_is_out_of_place(self, store: MemoryStore, kind: str) -> None:
        log = self.replaced(store, f"{kind}/0000000002", store.read(f"{kind}/0000000001"))
        with pytest.raises(RecordMisplaced, match=f"{kind}/0000000002 is out of place .it is {kind}/0000000001"):
            (log.read_plan if kind == "plan" else log.read_decision)(2)

    def test_a_record_that_changes_while_a_launch_runs_is_noticed(self, store: MemoryStore) -> None:
        log = WindowLog(store)
        assert log.read_plan(2) is not None
        links = {"plan/0000000001": log.hash_of("plan/0000000001") or ""}
        self.replaced(store, "plan/0000000002", seal("plan/0000000002", b"{}", links))
        with pytest.raises(RecordMisplaced, match="another one than this launch has seen"):
            log.read_plan(2)

    def test_what_was_removed_because_it_is_old_is_not_missed(self, store: MemoryStore) -> None:
        WindowLog(store).drop([0, 1])
        log = WindowLog(store)
        assert log.read_plan(2) is not None
        assert log.read_decision(2) is not None
        found = progress_of(log)
        assert (found.newest, found.undone, found.waiting) == (2, [], [])

    @pytest.mark.parametrize("gone", ["plan/0000000002", "decision/0000000002"])
    def test_what_the_newest_records_need_is_missed(self, store: MemoryStore, gone: str) -> None:
        store.discard(gone)
        needed_by = "done/0000000002" if gone.startswith("decision") else "decision/0000000002"
        with pytest.raises(RecordMissing, match=f"{gone} is missing .{needed_by} builds on it"):
            progress_of(WindowLog(store))

    def test_a_gap_between_plans_is_missed(self, store: MemoryStore) -> None:
        log = WindowLog(store)
        for window in (3, 4):
            log.plan(plan(window))
        assert progress_of(WindowLog(store)).waiting == [3, 4]
        store.discard("plan/0000000003")
        with pytest.raises(RecordMissing, match=r"plan/0000000003 is missing .plan/0000000004 builds on it"):
            progress_of(WindowLog(store))

    @pytest.mark.parametrize("mark", [b"", b"{}\n", None])
    def test_a_mark_of_done_that_says_nothing_is_made_again(self, store: MemoryStore, mark: bytes | None) -> None:
        data = store.read("done/0000000001") if mark is None else mark
        log = self.replaced(store, "done/0000000002", data)
        assert progress_of(log).undone == [2]
        log.done(2)
        assert progress_of(WindowLog(store)).undone == []

    def test_only_damaged_marks_before_a_whole_one_are_repaired(self, store: MemoryStore) -> None:
        for damaged in (1, 2):
            self.replaced(store, f"done/{damaged:010d}", b"")
        WindowLog(store).repair_marks()
        assert not WindowLog(store).is_done(1)  # nothing says that all has followed
        WindowLog(store).done(2)
        WindowLog(store).repair_marks()
        assert all(WindowLog(store).is_done(window) for window in (0, 1, 2))


def test_reports_must_cover_the_plan_exactly() -> None:
    log = WindowLog(MemoryStore())
    tasks = [task(partition=0), task(partition=1, items=2)]
    log.report(tasks[0].report_name, TaskReport("s0-0000", 1))
    with pytest.raises(WindowIncomplete, match="window 0: no report from s0-0001"):
        decide(log, plan(), "r", tasks, 0.0)
    log.report(tasks[1].report_name, TaskReport("s0-0001", 1))  # fewer items than it was given
    with pytest.raises(WindowIncomplete, match="s0-0001"):
        decide(log, plan(), "r", tasks, 0.0)
    assert log.read_decision(0) is None


@attrs.define
class Sink(Operator):
    """Notes what happens on the driver."""

    heard: list[object] = attrs.field(factory=list)

    def committed(self, window: int) -> None:
        self.heard.append(window)

    def show(self, lines: list[str], window: int) -> None:
        self.heard.append(lines)


def decided(log: WindowLog, window: int, *files: StagedFile) -> Decision:
    spec = task(window)
    log.report(spec.report_name, TaskReport(spec.name, 1, {}, list(files), {"out": ["line"]}))
    return decide(log, plan(window), "r", [spec], 0.0, durable=False)


def test_what_follows_from_a_decision_may_be_done_again(tmp_path: Path) -> None:
    log, sink = WindowLog(MemoryStore()), Sink()
    decision = decided(log, 0, staged(tmp_path, "part", "0000000000.r.a"), staged(tmp_path, "sub/part", "0000000000.r.b"))
    for _ in range(2):
        roll_forward(log, decision, {"out": sink}, durable=True)
        assert (tmp_path / "part").read_bytes() == (tmp_path / "sub" / "part").read_bytes() == b"x\n"
        assert log.windows("done") == [0]
    assert sink.heard == [0, ["line"], 0, ["line"]]


def test_half_of_what_follows_is_completed(tmp_path: Path) -> None:
    log = WindowLog(MemoryStore())
    files = [staged(tmp_path, name, f"0000000000.r.{name}") for name in ("a", "b")]
    decision = decided(log, 0, *files)
    (tmp_path / "a").write_bytes((Path(files[0].attempt)).read_bytes())
    Path(files[0].attempt).unlink()
    roll_forward(log, decision, {}, durable=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["_dagflow", "a", "b"]


def test_a_lost_attempt_file_is_an_error(tmp_path: Path) -> None:
    log = WindowLog(MemoryStore())
    file = staged(tmp_path, "part", "0000000000.r.a")
    decision = decided(log, 0, file)
    Path(file.attempt).unlink()
    with pytest.raises(FileLost):
        roll_forward(log, decision, {}, durable=False)
    assert not log.is_done(0)


def test_names_that_are_taken_get_window_and_number(tmp_path: Path) -> None:
    log = WindowLog(MemoryStore())
    (tmp_path / "part.txt").write_bytes(b"committed before")
    files = [staged(tmp_path, "part.txt", f"0000000004.r.{n}") for n in range(3)] + [staged(tmp_path, "plain", "0000000004.r.9")]
    decision = decided(log, 4, *files)
    assert [file.name for file in decision.files] == [
        "part-000004-0000.txt",
        "part-000004-0001.txt",
        "part-000004-0002.txt",
        "plain",
    ]
    roll_forward(log, decision, {}, durable=False)
    assert (tmp_path / "part.txt").read_bytes() == b"committed before"


def test_only_attempt_files_of_windows_that_are_done_are_swept(tmp_path: Path) -> None:
    log = WindowLog(MemoryStore())
    old, new = staged(tmp_path, "a", "0000000001.r.a"), staged(tmp_path, "b", "0000000002.r.b")
    staged(tmp_path, "c", "somebody-else")
    sweep(log, {0, 1}, [str(tmp_path), str(tmp_path / "nowhere")])
    assert not Path(old.attempt).exists()
    assert Path(new.attempt).exists()
    assert (tmp_path / "_dagflow" / "staging" / "somebody-else").exists()


def test_plans_and_decisions_are_made_durable_reports_need_not_be() -> None:
    durable, passing = CountingStore(), CountingStore()
    log = WindowLog(durable, passing)
    log.plan(plan())
    decided(log, 0)
    log.done(0)
    assert [name for call, name in durable.calls if call == "create"] == ["plan/0000000000", "decision/0000000000"]
    assert [name for call, name in passing.calls if call == "create"] == ["reports/0000000000.r.s0-0000", "done/0000000000"]


def test_records_of_earlier_versions_lack_what_was_added_since() -> None:
    launch = LaunchRecord(application="a", name="a", folder="/")
    decision = Decision(window=0, round="r", files=[], operators={}, notes={}, states={})
    for record, added in ((launch, ("view", "settings", "versions")), (decision, ("expectations",))):
        data = encode(record, "here")
        earlier = {name: value for name, value in data.items() if name not in added}
        assert decode(earlier, type(record)) == record
