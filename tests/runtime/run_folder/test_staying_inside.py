"""Whatever stored records say, nothing outside the folders of a run is read, moved or removed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG
from dagflow.errors import DagflowError, FolderNotOwned, PathOutside
from dagflow.ledger import Ledger, LedgerEntry, encode_entry, read_dataset
from dagflow.ledger.dataset.files import committed_files
from dagflow.ledger.tail import HINTS, entry_name
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.testing import run_dag
from operators import BlockReader, DatasetInput, FileSplitterInput, RecordWriter

TEXT = "precious\n"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "victim.txt").write_text(TEXT)
    return folder / "victim.txt"


def populate(source: Path, out: Path) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)]))
        lines = dag.add_operator("lines", BlockReader())
        sink = dag.add_operator("out", RecordWriter(str(out)))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, sink.input)

    return populate_dag


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Any]:
    """One window of one file of one line, as long as the victim's."""
    (tmp_path / "in.txt").write_text("harmless\n")
    return lambda **settings: run_dag(populate(tmp_path / "in.txt", tmp_path / "out"), **settings)


NAMES = ["../elsewhere/victim.txt", "ABSOLUTE", "link/victim.txt", "alias.txt"]


def place(name: str, out: Path, victim: Path) -> str:
    """A name as a forged record would have it, with the links that it needs."""
    (out / "link").symlink_to("../elsewhere")
    (out / "alias.txt").symlink_to(victim)
    return str(victim) if name == "ABSOLUTE" else name


def forge(out: Path, name: str) -> None:
    """Makes the newest entry of a ledger name another file, whole in all else."""
    ledger = Ledger.open(str(out))
    head = ledger.refresh()
    assert head is not None
    assert head.data is not None
    assert head.data.new_data is not None
    (file,) = head.data.new_data.files
    data = attrs.evolve(head.data.new_data, files=(attrs.evolve(file, path=name, size=len(TEXT)),))
    forged: LedgerEntry = attrs.evolve(head, event=attrs.evolve(head.event, new_data=data))
    for hint in (out / "_dagflow" / HINTS).glob("*"):
        hint.unlink()
    (out / "_dagflow" / entry_name(head.seq)).write_bytes(encode_entry(forged))


def read_by_an_application(out: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", DatasetInput(path=str(out)))
        lines = dag.add_operator("lines", BlockReader())
        sink = dag.add_operator("out", RecordWriter(str(out.parent / "derived")))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, sink.input)

    run_dag(populate_dag)


@pytest.mark.parametrize("name", NAMES)
class TestEntries:
    @pytest.fixture
    def out(self, run: Callable[..., Any], tmp_path: Path, victim: Path, name: str) -> Path:
        run()
        forge(tmp_path / "out", place(name, tmp_path / "out", victim))
        return tmp_path / "out"

    @pytest.mark.parametrize(
        "read", [lambda out: read_dataset(out), lambda out: committed_files(str(out)), read_by_an_application]
    )
    def test_what_reads_the_files_refuses_them(self, out: Path, read: Callable[[Path], Any]) -> None:
        with pytest.raises(PathOutside):
            read(out)

    def test_verify_reports_the_path_once_and_reads_nothing(self, out: Path) -> None:
        problems = Ledger.open(str(out)).verify().problems
        named = [problem for problem in problems if "victim.txt" in str(problem) or "alias.txt" in str(problem)]
        assert len(named) == 1
        assert "has the hash" not in str(problems)

    def test_starting_over_leaves_it_there_and_says_so(self, out: Path, run: Callable[..., Any], victim: Path, name: str) -> None:
        report = run(fresh=True)
        assert victim.read_text() == TEXT
        assert report.windows == 1
        (warning,) = report.warnings
        assert "files that only they name stay" in warning


def undo(out: Path, **changes: str) -> None:
    """Makes a finished window one that was decided, and not followed yet, of which the decision says something else."""
    folder = out / "_dagflow"
    (folder / "done" / "0000000000").unlink()
    log = WindowLog.open(str(folder), durable=False, outputs=[str(out)])
    decision = log.read_decision(0)
    assert decision is not None
    (folder / "decision" / "0000000000").unlink()
    log.decide(attrs.evolve(decision, files=[attrs.evolve(file, **changes) for file in decision.files]))


class TestDecisions:
    @pytest.fixture
    def out(self, run: Callable[..., Any], tmp_path: Path) -> Path:
        run()
        return tmp_path / "out"

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("what", ["name", "attempt"])
    def test_no_file_is_moved_to_or_from_elsewhere(
        self, out: Path, run: Callable[..., Any], victim: Path, name: str, what: str
    ) -> None:
        named = place(name, out, victim)
        staged = out / "_dagflow" / "staging" / "0000000000.forged"
        staged.parent.mkdir(exist_ok=True)
        staged.write_text("harmless\n")

        forged = named if what == "name" or name == "ABSOLUTE" else str(out / named)
        undo(out, **{"attempt": str(staged), what: forged})
        with pytest.raises(DagflowError) as caught:
            run()
        assert isinstance(caught.value, PathOutside)
        assert victim.read_text() == TEXT
        assert staged.exists()

    def test_no_file_is_moved_into_what_is_ours(self, out: Path, run: Callable[..., Any]) -> None:
        undo(out, name="_dagflow/app-id")
        with pytest.raises(PathOutside):
            run()

    def test_a_folder_that_is_no_output_of_the_run_is_refused(self, out: Path, run: Callable[..., Any], victim: Path) -> None:
        staged = victim.parent / "_dagflow" / "staging" / "0000000000.x"
        staged.parent.mkdir(parents=True)
        staged.write_text("mine")
        undo(out, folder=str(victim.parent), attempt=str(staged), name="victim.txt")
        with pytest.raises(FolderNotOwned, match="decision of window 0"):
            run()
        assert victim.read_text() == TEXT
        assert staged.exists()

    def test_starting_over_removes_nothing_elsewhere(self, out: Path, run: Callable[..., Any], victim: Path) -> None:
        undo(out, name="../elsewhere/victim.txt")
        assert "'../elsewhere/victim.txt'" in run(fresh=True).warnings[0]
        assert victim.read_text() == TEXT


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("staging", "0000000000.old"),
        ("events", "old.jsonl"),
        ("launches", "old"),
        ("reports", "0000000000.x"),
        ("keyed-state", "state/0000000000-0123456789abcdef"),
        ("task-states", "0000000000." + "a" * 64),
    ],
)
@pytest.mark.parametrize("fresh", [False, True])
def test_a_launch_sweeps_nothing_through_a_link(
    run: Callable[..., Any], tmp_path: Path, victim: Path, folder: str, name: str, fresh: bool
) -> None:
    run()
    ours = tmp_path / "out" / "_dagflow" / folder
    if ours.exists():
        ours.rename(tmp_path / "aside")
    ours.symlink_to(victim.parent)
    bait = victim.parent / name
    bait.parent.mkdir(exist_ok=True)
    bait.write_text("bait")
    (tmp_path / "in.txt").write_text("harmless\nmore\n")
    with pytest.raises(PathOutside, match="leads out of this folder to"):
        run(fresh=fresh)
    assert bait.read_text() == "bait"
    assert sorted(os.listdir(victim.parent)) == sorted({"victim.txt", name.partition("/")[0]})
