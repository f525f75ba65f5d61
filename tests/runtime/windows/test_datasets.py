"""Every decided window stands in the ledgers of its datasets, once, whatever happened in between."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort, launch
from dagflow.errors import FileLost, LedgerCut, LedgerDamaged, PlanMismatch, SchemasDiffer
from dagflow.ledger import AddData, Checkpoint, Ledger, LedgerEntry, SetSource, encode_entry, read_dataset
from dagflow.ledger.tail import entry_name
from dagflow.planning.steps import make_plan
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.windows.datasets import Datasets, datasets_of
from dagflow.scaling import OperatorStats, Partition, PartitioningContext, Response, resized
from dagflow.storage import LocalStore
from dagflow.storage.local.files import LocalFileSystem
from operators import Filter, RecordWriter
from tests.conformance.windows import InWindows


@attrs.define
class Windows(InWindows[str]):
    """Lines."""


@attrs.define
class Spread(Operator):
    """Starts the partitioned part."""

    partitioner = "self"
    input = InputPort[str]()
    output = OutputPort[str]()

    def process_stats(self, stats: Sequence[OperatorStats]) -> Response:
        self.__dict__["wanted"] = min(stats[-1].queue_size, 3)
        return Response(repartition_required=True)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
        return resized(partitions, self.__dict__.get("wanted", 1))

    @input.process
    def each(self, line: str) -> None:
        self.output.emit(line)


@attrs.define
class Application:
    """source → spread → [filter →] one or two writers."""

    windows: list[list[str]]
    outputs: list[str]
    terminators: tuple[str, ...] = ("\n", "\n")
    keep: Any = None
    suffix: str = ""

    def populate_dag(self, dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", Windows(self.windows))
        spread = dag.add_operator("spread", Spread())
        keep = dag.add_operator("keep", Filter[str](self.keep or (lambda line: True)))
        sinks = [
            dag.add_operator(f"out{number}", RecordWriter[str](folder, terminator=self.terminators[number], suffix=self.suffix))
            for number, folder in enumerate(self.outputs)
        ]
        dag.add_stream("lines", source.output, spread.input)
        dag.add_stream("spread lines", spread.output, keep.input)
        dag.add_stream("kept lines", keep.output, *(sink.input for sink in sinks))


def run(application: Any, **options: Any) -> Any:
    return launch(application, runner="local", progress="none", **options).report


def data_entries(folder: Path) -> list[LedgerEntry]:
    return [entry for entry in Ledger.open(str(folder)).entries() if isinstance(entry.event, AddData)]


def rows(folder: Path) -> list[str]:
    return sorted(read_dataset(str(folder)).to_table().column("value").to_pylist())


WINDOWS = [["a", "b", "c"], ["d"], ["e", "f"]]


class TestEntries:
    def test_each_window_is_one_entry(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        report = run(Application(WINDOWS, [str(out)]))
        entries = data_entries(out)
        assert [entry.event.txn.window_id for entry in entries] == [0, 1, 2]
        assert [entry.event.new_data.interval.rows for entry in entries] == [3, 1, 2]
        assert [entry.event.sources["source"].value for entry in entries] == ["0", "1", "2"]
        assert rows(out) == list("abcdef")
        assert Ledger.open(str(out)).verify().is_clean
        assert report.ledgers == {str(out): str(Ledger.open(str(out)).head())}

    def test_a_further_launch_adds_nothing(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(Application(WINDOWS, [str(out)]))
        before = Ledger.open(str(out)).head()
        run(Application(WINDOWS, [str(out)]))
        assert Ledger.open(str(out)).head() == before

    def test_a_window_that_consumed_and_made_no_row_is_an_entry(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(Application(WINDOWS, [str(out)], keep=lambda line: line != "d"))
        entries = data_entries(out)
        assert [entry.event.new_data is None for entry in entries] == [False, True, False]
        assert [entry.event.prev_offset for entry in entries] == [None, 2, 2]
        assert entries[1].event.sources["source"].value == "1"
        assert rows(out) == list("abcef")

    def test_two_outputs_are_two_datasets_of_one_decision(self, tmp_path: Path) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        run(Application(WINDOWS, [str(one), str(two)]))
        assert rows(one) == rows(two) == list("abcdef")
        assert [e.event.txn for e in data_entries(one)] == [e.event.txn for e in data_entries(two)]
        ids = {Ledger.open(str(folder)).seed().dataset_id for folder in (one, two)}
        assert len(ids) == 2

    def test_the_checkpoint_of_an_entry_is_the_hash_of_its_decision(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(Application([[str(n)] for n in range(7)], [str(out)]))
        log = WindowLog.open(str(out / "_dagflow"), durable=False)
        entries = data_entries(out)
        assert [entry.event.new_checkpoint for entry in entries] == [Checkpoint(hash=log.decision_hash(n)) for n in range(7)]
        assert Ledger.open(str(out)).verify().is_clean

    def test_an_entry_of_another_decision_is_refused(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(Application(WINDOWS, [str(out)]))
        ledger = Ledger.open(str(out))
        entry = ledger.entry(ledger.resume().at.seq)
        other = attrs.evolve(entry, event=attrs.evolve(entry.event, new_checkpoint=Checkpoint(hash=entry.hash)))
        (out / "_dagflow" / entry_name(entry.seq)).write_bytes(encode_entry(other))
        for hint in (out / "_dagflow" / "ledger-hint").iterdir():
            hint.unlink()
        with pytest.raises(LedgerDamaged, match=r"its checkpoint is sha256:.*, the decision of window 2 has the hash sha256:"):
            run(Application(WINDOWS, [str(out)]))

    def test_starting_over_begins_another_dataset(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(Application(WINDOWS, [str(out)]))
        first = Ledger.open(str(out)).seed().dataset_id
        run(Application([["x"]], [str(out)]), fresh=True)
        ledger = Ledger.open(str(out))
        assert ledger.seed().dataset_id != first
        assert rows(out) == ["x"]
        assert ledger.verify().is_clean
        assert len(list(out.glob("part-*"))) == 1

    def test_starting_over_removes_files_that_only_the_ledger_knows(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(Application(WINDOWS, [str(out)]), retain_windows=1)
        run(Application([["x"]], [str(out)]), fresh=True)
        assert [file.read_text() for file in out.glob("part-*")] == ["x\n"]

    def test_a_moved_dataset_goes_on(self, tmp_path: Path) -> None:
        run(Application(WINDOWS[:1], [str(tmp_path / "out")]))
        shutil.move(tmp_path / "out", tmp_path / "elsewhere")
        run(Application(WINDOWS, [str(tmp_path / "elsewhere")]))
        assert rows(tmp_path / "elsewhere") == list("abcdef")
        assert Ledger.open(str(tmp_path / "elsewhere")).verify().is_clean


class TestCrashes:
    """Whatever is lost or done twice after a decision: the next launch ends at the same ledger."""

    @pytest.fixture
    def points(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Dies before the n-th append of a data event."""

        class Died(BaseException):
            pass

        calls = {"left": -1}
        append = Ledger.append

        def dying(self: Ledger, event: Any, **options: Any) -> Any:
            if isinstance(event, AddData):
                if calls["left"] == 0:
                    raise Died
                calls["left"] -= 1
            return append(self, event, **options)

        monkeypatch.setattr(Ledger, "append", dying)

        def die_before(number: int, application: Application) -> None:
            calls["left"] = number
            with pytest.raises(Died):
                run(application)
            calls["left"] = -1

        return die_before

    @pytest.mark.parametrize("number", range(6))
    def test_each_chain_catches_up(self, tmp_path: Path, points: Any, number: int) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        application = Application(WINDOWS, [str(one), str(two)])
        points(number, application)
        run(application)
        for folder in (one, two):
            assert rows(folder) == list("abcdef")
            assert [entry.event.txn.window_id for entry in data_entries(folder)] == [0, 1, 2]
            assert Ledger.open(str(folder)).verify().is_clean
        before = Ledger.open(str(one)).head()
        run(application)
        assert Ledger.open(str(one)).head() == before

    def test_a_file_that_is_gone_before_its_entry_is_refused(self, tmp_path: Path, points: Any) -> None:
        out = tmp_path / "out"
        application = Application(WINDOWS, [str(out)])
        points(1, application)
        (out / "part-000001-0000").rename(tmp_path / "aside")
        with pytest.raises(FileLost):
            run(application)
        assert [entry.event.txn.window_id for entry in data_entries(out)] == [0]
        (tmp_path / "aside").rename(out / "part-000001-0000")
        run(application)
        assert [entry.event.txn.window_id for entry in data_entries(out)] == [0, 1, 2]
        assert Ledger.open(str(out)).verify().is_clean

    def test_marks_of_done_that_were_lost_change_nothing(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        application = Application([*WINDOWS, ["never"]], [str(out)], keep=lambda line: line != "never")
        run(application)
        before = Ledger.open(str(out)).head()
        shutil.rmtree(out / "_dagflow" / "done")
        run(application)
        assert Ledger.open(str(out)).head() == before
        assert WindowLog.open(str(out / "_dagflow"), False).windows("done") == [0, 1, 2, 3]


class TestRefused:
    def test_a_ledger_that_is_gone(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(Application(WINDOWS[:1], [str(out)]))
        shutil.rmtree(out / "_dagflow" / "ledger")
        shutil.rmtree(out / "_dagflow" / "ledger-hint")
        with pytest.raises(LedgerDamaged, match="the ledger is gone"):
            run(Application(WINDOWS, [str(out)]))
        assert run(Application(WINDOWS, [str(out)]), fresh=True).status == "done"

    @pytest.mark.parametrize("retain_windows", [1, 1000])
    def test_a_ledger_of_yesterday(self, tmp_path: Path, retain_windows: int) -> None:
        """Its hint is of yesterday too: only the run folder knows that there was more."""
        out, older = tmp_path / "out", tmp_path / "older"
        application = Application([*WINDOWS, []], [str(out)])
        run(application, max_windows=2, retain_windows=retain_windows)
        shutil.copytree(out / "_dagflow", older)
        run(application, max_windows=1, retain_windows=retain_windows)
        for name in ("ledger", "ledger-hint"):
            shutil.rmtree(out / "_dagflow" / name)
            shutil.copytree(older / name, out / "_dagflow" / name)
        before = Ledger.open(str(out)).head()
        with pytest.raises(LedgerCut, match=r"entry 4: it is the newest, but the run has committed window 2 after it"):
            run(application, retain_windows=retain_windows)
        assert Ledger.open(str(out)).head() == before

    def test_a_window_log_of_yesterday(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        application = Application(WINDOWS, [str(out)])
        run(application)
        for kind in ("plan", "decision", "done"):
            shutil.rmtree(out / "_dagflow" / kind)
        files = sorted(out.iterdir())
        with pytest.raises(PlanMismatch, match=r"the log is empty, but the ledger of .* has window 2 of this run"):
            run(application)
        assert sorted(out.iterdir()) == files
        assert run(application, fresh=True).status == "done"
        assert rows(out) == list("abcdef")

    def test_an_application_that_has_lost_its_id(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        run(Application(WINDOWS, [str(out)]), max_windows=2)
        (out / "_dagflow" / "app-id").unlink()
        with pytest.raises(PlanMismatch, match="app-id is gone, by which ledgers know what was committed"):
            run(Application(WINDOWS, [str(out)]))
        assert rows(out) == list("abcd")

    def test_another_application_leaves_the_ledger_alone(self, tmp_path: Path) -> None:
        run(Application(WINDOWS, [str(tmp_path / "out")]))
        before = Ledger.open(str(tmp_path / "out")).head()

        def other(dag: DAG, conf: object) -> None:
            source = dag.add_operator("elsewhere", Windows(WINDOWS))
            dag.add_stream("lines", source.output, dag.add_operator("out0", RecordWriter[str](str(tmp_path / "out"))).input)

        with pytest.raises(PlanMismatch):
            run(other)
        assert Ledger.open(str(tmp_path / "out")).head() == before

    def test_two_kinds_of_rows_in_one_folder(self, tmp_path: Path) -> None:
        application = Application(WINDOWS, [str(tmp_path), str(tmp_path)], terminators=("\n", ""))
        dag = DAG("a")
        application.populate_dag(dag, None)
        with pytest.raises(SchemasDiffer) as caught:
            list(datasets_of(make_plan(dag)))
        assert str(caught.value) == (
            f"output folder {tmp_path} is one dataset, but two sinks write different rows into it\n"
            "  'out0': value: string\n  'out1': value: binary\n  help: give each of them a folder of its own"
        )


def test_sources_are_named_once(tmp_path: Path) -> None:
    application = Application(WINDOWS, [str(tmp_path / "out")])
    dag = DAG("a")
    application.populate_dag(dag, None)
    for _ in range(2):
        (tmp_path / "out" / "_dagflow").mkdir(parents=True, exist_ok=True)
        Datasets(make_plan(dag), "app", durable=False).open()
    events = [entry.event for entry in Ledger.open(str(tmp_path / "out")).entries()]
    assert [type(event).__name__ for event in events] == ["Seed", "SetSchema", "SetSource"]
    assert isinstance(events[2], SetSource)
    assert events[2].spec == {"operator": "Windows", "paths": []}


def test_starting_over_is_forgotten_only_when_all_ledgers_are_gone_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut could bring back the ledger of a second output, and no launch would know that it is to go."""
    application = Application(WINDOWS, [str(tmp_path / "one"), str(tmp_path / "two")])
    run(application)
    calls: list[tuple[str, str]] = []
    discard, sync = LocalStore.discard, LocalFileSystem.sync_folder

    def discarding(self: LocalStore, name: str) -> None:
        calls.append(("discard", f"{self.folder}/{name}"))
        discard(self, name)

    def syncing(self: LocalFileSystem, path: str) -> None:
        calls.append(("sync", path))
        sync(self, path)

    monkeypatch.setattr(LocalStore, "discard", discarding)
    monkeypatch.setattr(LocalFileSystem, "sync_folder", syncing)
    run(application, fresh=True, max_windows=1)
    forgotten = calls.index(("discard", f"{tmp_path}/one/_dagflow/starting-over"))
    for name in ("one", "two"):
        ours = f"{tmp_path}/{name}/_dagflow"
        erased = max(
            n for n, (what, path) in enumerate(calls[:forgotten]) if what == "discard" and path.startswith(f"{ours}/ledger/")
        )
        assert ("sync", ours) in calls[erased:forgotten], name
