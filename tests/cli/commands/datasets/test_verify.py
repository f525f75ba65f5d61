"""Damage of each kind, as `dagflow verify` tells it."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.ledger import encode_entry
from dagflow.ledger.tail import entry_name
from dagflow.storage import file_system
from tests.cli.conftest import LINE_FILTER, Answer
from tests.cli.datasets import Dataset, sensors
from tests.golden.compare import Golden

Dagflow = Callable[..., Answer]


def test_clean(dagflow: Dagflow, golden: Golden, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    answer = dagflow("verify", "out")
    assert (answer.code, answer.err) == (0, "")
    golden("cli_verify.txt", answer.out)


def flip(path: Path, at: int = -10) -> None:
    stored = bytearray(path.read_bytes())
    stored[at] ^= 1
    path.write_bytes(stored)


def entry_path(made: Dataset, seq: int) -> Path:
    return made.folder / "_dagflow" / entry_name(seq)


def remove_an_entry(made: Dataset) -> None:
    entry_path(made, 3).unlink()


def cut_the_end(made: Dataset) -> None:
    entry_path(made, 6).unlink()


def remove_all_entries(made: Dataset) -> None:
    shutil.rmtree(made.folder / "_dagflow" / "ledger")


def tear_an_entry(made: Dataset) -> None:
    path = entry_path(made, 4)
    path.write_bytes(path.read_bytes()[:100])


def swap_entries(made: Dataset) -> None:
    one, other = entry_path(made, 3), entry_path(made, 4)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def rewrite_an_entry(made: Dataset) -> None:
    entry = made.ledger.entry(4)
    entry_path(made, 4).write_bytes(encode_entry(attrs.evolve(entry, system_time=entry.system_time + 1)))


def break_a_rule(made: Dataset) -> None:
    entry = made.ledger.entry(6)
    event = attrs.evolve(entry.data, new_watermark=1)
    changed = attrs.evolve(entry, seq=7, prev_hash=entry.hash, event=event, carried=entry.carried.after(7, event))
    entry_path(made, 7).write_bytes(encode_entry(changed))


def remove_a_file(made: Dataset) -> None:
    (made.folder / "sub" / "c.txt").unlink()


def shorten_a_file(made: Dataset) -> None:
    (made.folder / "a.txt").write_text("1\n2\n")


def flip_a_file(made: Dataset) -> None:
    flip(made.folder / "e.txt")


def a_folder_for_a_file(made: Dataset) -> None:
    (made.folder / "b.txt").unlink()
    (made.folder / "b.txt").mkdir()


def a_foreign_entry(made: Dataset) -> None:
    (made.folder / "_dagflow" / "ledger" / "000000000" / "notes.txt").write_text("mine\n")


@pytest.mark.parametrize(
    ("damage", "codes", "words"),
    [
        (remove_an_entry, {"DF504"}, "entry 3: it is missing, but entry 6 is there"),
        (cut_the_end, {"DF505"}, "entry 6: it was written"),
        (remove_all_entries, {"DF505"}, "entry 6: it was written"),
        (tear_an_entry, {"DF503"}, "entry 4: its 100 bytes are not a whole entry"),
        (swap_entries, {"DF523", "DF522"}, "entry 3"),
        (rewrite_an_entry, {"DF522"}, "entry 5: prev_hash"),
        (break_a_rule, {"DF535"}, "entry 7: new_watermark is 1"),
        (remove_a_file, {"DF508"}, "entry 3: sub/c.txt is not there; 2 rows were committed in it"),
        (shorten_a_file, {"DF509"}, "entry 2: a.txt has 4 bytes, 6 were committed"),
        (flip_a_file, {"DF509"}, "entry 6: e.txt has the hash sha256:"),
        (a_folder_for_a_file, {"DF509"}, "entry 3: b.txt"),
        (a_foreign_entry, {"DF507"}, "notes.txt is not an entry"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_damage_is_named(
    dagflow: Dagflow, tmp_path: Path, damage: Callable[[Dataset], None], codes: set[str], words: str
) -> None:
    damage(sensors(tmp_path / "out"))
    answer = dagflow("verify", "out")
    assert answer.code == 1
    assert answer.out.startswith(f"{tmp_path}/out: damaged, ")
    assert words in answer.err
    found = dagflow("verify", "out", "--json")
    assert (found.code, found.err) == (1, "")
    report = json.loads(found.out)
    assert report["ok"] is False
    assert codes <= {problem["code"] for problem in report["problems"]}
    assert all(f"error[{problem['code']}]" in answer.err for problem in report["problems"])


def test_how_damage_looks(dagflow: Dagflow, golden: Golden, tmp_path: Path) -> None:
    made = sensors(tmp_path / "out")
    remove_a_file(made)
    flip_a_file(made)
    answer = dagflow("verify", "out")
    golden("cli_verify_damaged.txt", answer.out + answer.err)


def test_files_need_not_be_read(dagflow: Dagflow, tmp_path: Path) -> None:
    flip_a_file(sensors(tmp_path / "out"))
    answer = dagflow("verify", "out", "--no-files")
    assert answer.code == 0
    assert "not read (--no-files)" in answer.out
    assert json.loads(dagflow("verify", "out", "--no-files", "--json").out)["files"] is None


def test_an_entry_that_was_noted_shows_a_ledger_that_was_written_anew(dagflow: Dagflow, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    newest = json.loads(dagflow("verify", "out", "--json").out)["newest"]
    assert newest in dagflow("verify", "out").out
    assert dagflow("verify", "out", "--noted", newest).code == 0
    shutil.rmtree(tmp_path / "out")
    made = Dataset(tmp_path / "out")
    for watermark in range(1, 8):
        made.commit({}, watermark=watermark)
    assert dagflow("verify", "out").code == 0
    answer = dagflow("verify", "out", "--noted", newest)
    assert answer.code == 1
    assert answer.err.startswith("error[DF506] ")


@pytest.mark.parametrize("noted", ["6", "six:sha256:ab", "6:ab", ":sha256:ab"])
def test_what_names_no_entry(dagflow: Dagflow, tmp_path: Path, noted: str) -> None:
    sensors(tmp_path / "out")
    answer = dagflow("verify", "out", "--noted", noted)
    assert answer.code == 2
    assert "names no entry" in answer.err


def chain(tmp_path: Path) -> tuple[Dataset, Dataset]:
    source = sensors(tmp_path / "sensors")
    totals = Dataset(tmp_path / "totals", "totals", made_of={"sensors": "sensors"})
    totals.derive({"t.txt": "10\n"}, source)
    return source, totals


def test_inputs_are_found(dagflow: Dagflow, golden: Golden, tmp_path: Path) -> None:
    chain(tmp_path)
    answer = dagflow("verify", "totals")
    assert (answer.code, answer.err) == (0, "")
    golden("cli_verify_derived.txt", answer.out)
    assert json.loads(dagflow("verify", "totals", "--json").out)["inputs"] == {"sensors": str(tmp_path / "sensors")}


def test_inputs_that_have_moved(dagflow: Dagflow, tmp_path: Path) -> None:
    chain(tmp_path)
    (tmp_path / "sensors").rename(tmp_path / "moved")
    answer = dagflow("verify", "totals")
    assert answer.code == 0
    assert "sensors: not checked, it is not at sensors (--input PATH)" in answer.out
    told = dagflow("verify", "totals", "--input", "moved")
    assert told.code == 0
    assert f"sensors: {tmp_path}/moved\n" in told.out
    assert dagflow("verify", "totals", "--input", "nowhere").code == 2


def test_an_input_that_was_written_anew(dagflow: Dagflow, tmp_path: Path) -> None:
    chain(tmp_path)
    shutil.rmtree(tmp_path / "sensors")
    Dataset(tmp_path / "sensors").commit({"a.txt": "other\n"})
    answer = dagflow("verify", "totals")
    assert answer.code == 1
    assert "error[DF559] entry 3: inputs[0]" in answer.err


def test_an_input_whose_ledger_is_damaged(dagflow: Dagflow, tmp_path: Path) -> None:
    chain(tmp_path)
    entry = tmp_path / "sensors" / "_dagflow" / "ledger" / "000000000" / "000000000000.json"
    entry.write_bytes(b"x" + entry.read_bytes()[1:])
    answer = dagflow("verify", "totals")
    assert answer.code == 1
    assert "totals: clean, but not its inputs, 1 problem\n" in answer.out
    assert answer.err.startswith("error[DF503] ")
    assert "sensors/_dagflow, entry 0: " in answer.err


def test_a_file_that_may_not_be_read_is_not_called_damaged(
    dagflow: Dagflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(next(sensors(tmp_path / "out").folder.glob("*.txt")))
    local = type(file_system(path))
    opened = local.open

    def refused(self: Any, name: str, *more: Any) -> Any:
        if name == path:
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return opened(self, name, *more)

    monkeypatch.setattr(local, "open", refused)
    answer = dagflow("verify", "out")
    assert answer.code == 1
    assert answer.out.startswith(f"{tmp_path}/out: not all of it could be read, 1 problem\n")
    assert answer.err.startswith(f"error[DF413] {path}: permission to read was denied")


def test_a_ledger_that_was_removed(dagflow: Dagflow, launched: Path) -> None:
    shutil.rmtree(launched / "_dagflow" / "ledger")
    shutil.rmtree(launched / "_dagflow" / "ledger-hint", ignore_errors=True)
    answer = dagflow("verify", "out")
    assert answer.code == 1
    assert "the ledger is gone, but windows were decided here" in answer.err


def test_a_dataset_that_is_no_input(dagflow: Dagflow, tmp_path: Path) -> None:
    chain(tmp_path)
    Dataset(tmp_path / "other", "other")
    answer = dagflow("verify", "totals", "--input", "other")
    assert answer.code == 2
    assert "other holds the dataset other; the inputs are sensors" in answer.err
    assert dagflow("verify", "sensors", "--input", "other").code == 2


def test_there_is_no_such_dataset(dagflow: Dagflow, tmp_path: Path) -> None:
    assert dagflow("verify", "nowhere").code == 2
    (tmp_path / "plain").mkdir()
    assert dagflow("verify", "plain").code == 2


@pytest.fixture
def launched(dagflow: Dagflow, tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text("one\n.no\ntwo\n")
    given = ["-D", "input=logs", "-D", "output=out", "--runner", "local", "--progress", "none"]
    assert dagflow("launch", LINE_FILTER, *given).code == 0
    return tmp_path / "out"


def test_a_ledger_that_was_cut_with_its_hint(dagflow: Dagflow, launched: Path, tmp_path: Path) -> None:
    """All that is left of it is whole: only the run folder knows that there was more."""
    ours, older = launched / "_dagflow", tmp_path / "older"
    shutil.copytree(ours, older)
    (tmp_path / "logs" / "b.txt").write_text("three\n")
    given = ["-D", "input=logs", "-D", "output=out", "--runner", "local", "--progress", "none"]
    assert dagflow("launch", LINE_FILTER, *given).code == 0
    assert dagflow("verify", "out").code == 0
    for name in ("ledger", "ledger-hint"):
        shutil.rmtree(ours / name)
        shutil.copytree(older / name, ours / name)
    answer = dagflow("verify", "out")
    assert answer.code == 1
    assert "entry 3: it is the newest, but the run has committed window 1 after it: the end of the ledger is lost" in answer.err


def test_replay(dagflow: Dagflow, launched: Path) -> None:
    answer = dagflow("verify", "out", "--replay", "--trust")
    assert (answer.code, answer.err) == (0, "")
    assert "  replayed  1 window, 2 rows: as they were committed\n" in answer.out
    told = json.loads(dagflow("verify", "out", "--replay", "--trust", "--json").out)
    assert told["replay"] == {"windows": 1, "rows": 2, "left_out": []}
    assert json.loads(dagflow("verify", "out", "--json").out)["replay"] is None


def test_replay_that_comes_out_differently(dagflow: Dagflow, launched: Path) -> None:
    answer = dagflow("verify", "out", "--replay", "--trust", "-D", "prefix=t")
    assert answer.code == 1
    assert answer.out.startswith(f"{launched}: clean, but not made again, 1 problem\n")
    assert answer.err.startswith(
        "error[DF358] window 0 (entry 3), replayed, does not give part-000000-0000 as it was committed: "
    )
    assert "row 2 is '.no', 'two' was committed (properties have changed since: keep.predicate = " in answer.err


def test_replay_of_what_is_gone(dagflow: Dagflow, launched: Path, tmp_path: Path) -> None:
    (tmp_path / "logs" / "a.txt").unlink()
    answer = dagflow("verify", "out", "--replay", "--trust")
    assert answer.code == 1  # nothing at all was replayed: that proves nothing
    assert answer.err.startswith("error: nothing was replayed: ")
    assert f"  not replayed  window 0: {tmp_path}/logs/a.txt" in answer.out
    made = sensors(tmp_path / "made")
    assert "2 windows (the last is 4): " in dagflow("verify", "made", "--replay", "--trust", "--windows", "2").out
    tear_an_entry(made)
    assert dagflow("verify", "made", "--replay", "--trust").code == 1


def test_options_of_replaying_need_it(dagflow: Dagflow, launched: Path) -> None:
    answer = dagflow("verify", "out", "-D", "prefix=t")
    assert answer.code == 2
    assert "-D and --conf go with --app or --trust" in answer.err


NUMBERS = """
from operators import BlockReader, FileSplitterInput, Map, RecordWriter


def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    lines = dag.add_operator("lines", BlockReader())
    numbers = dag.add_operator("numbers", Map(lambda line: str(int(line.record))))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, numbers.input)
    dag.add_stream("found", numbers.output, dag.add_operator("writer", RecordWriter("out")).input)
"""


class TestRunFolder:
    def test_its_records_are_counted(self, dagflow: Dagflow, launched: Path) -> None:
        answer = dagflow("verify", "out")
        assert f"  records  6 records of the run folder {launched}/_dagflow: seals and links\n" in answer.out
        told = json.loads(dagflow("verify", "out", "--json").out)
        assert told["run_folder"] == {"path": f"{launched}/_dagflow", "records": 6, "undecided": [], "rejected": []}

    def test_a_window_that_is_not_committed_is_named(self, dagflow: Dagflow, write: Callable[..., None]) -> None:
        write("app.py", NUMBERS)
        write("logs/a.txt", "one\n")
        assert dagflow("launch", "app.py", "--runner", "local").code == 1
        answer = dagflow("verify", "out")
        assert answer.code == 0
        assert "  undecided  window 0 is planned and not committed: a launch runs now, or launch again to resume\n" in answer.out
        assert json.loads(dagflow("verify", "out", "--json").out)["run_folder"]["undecided"] == [0]

    @pytest.mark.parametrize("name", ["plan/0000000000", "decision/0000000000", "done/0000000000", "app-id"])
    def test_a_damaged_record_is_told(self, dagflow: Dagflow, launched: Path, name: str) -> None:
        flip(launched / "_dagflow" / name)
        answer = dagflow("verify", "out")
        assert answer.code == 1
        assert answer.out.startswith(f"{launched}: clean, but not its run folder, ")
        assert f"error[DF317] {launched}/_dagflow/{name} is damaged (its bytes have the hash sha256:" in answer.err

    def test_one_that_is_missing_is_told(self, dagflow: Dagflow, launched: Path) -> None:
        (launched / "_dagflow" / "plan" / "0000000000").unlink()
        answer = dagflow("verify", "out")
        assert answer.code == 1
        assert "error[DF319] " in answer.err
        assert "plan/0000000000 is missing (decision/0000000000 builds on it)" in answer.err

    def test_elsewhere(self, dagflow: Dagflow, launched: Path, tmp_path: Path) -> None:
        given = ["-D", "input=logs", "-D", "output=two", "--runner", "local", "--progress", "none", "--run-folder", "run"]
        assert dagflow("launch", LINE_FILTER, *given).code == 0
        (tmp_path / "run").rename(tmp_path / "moved")
        answer = dagflow("verify", "two")
        assert answer.code == 0
        assert f"  records  not checked: there are no records in {tmp_path}/run (--run-folder PATH)\n" in answer.out
        assert "  records  6 records of the run folder" in dagflow("verify", "two", "--run-folder", "moved").out

    def test_of_another_version(self, dagflow: Dagflow, launched: Path) -> None:
        for path in (launched / "_dagflow" / "plan" / "0000000000", launched / "_dagflow" / "decision" / "0000000000"):
            path.write_text('{"format":4,"window":0}')
        answer = dagflow("verify", "out")
        assert answer.code == 1
        assert "another version of dagflow (format 4, this one reads 5)" in answer.err


# ---------------------------------------------------------------------------------------------- tables, databases and logs

SHOP = """
from operators import CsvFormat, FileSplitterInput, JsonLinesWriter, ScanReader, SqlWriter

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput("in"))
    reader = dag.add_operator("reader", ScanReader(CsvFormat()))
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    table = dag.add_operator("table", SqlWriter("sqlite:///shop.db", "sales"))
    sinks = [table.input] if not {has_files} else [table.input, dag.add_operator("out", JsonLinesWriter("out")).input]
    dag.add_stream("rows", reader.batches, *sinks)
"""


def shop(dagflow: Dagflow, folder: Path, *, has_files: bool) -> None:
    """Launch an application twice, and keep a copy of its database after the first launch."""
    (folder / "shop.py").write_text(SHOP.replace("{has_files}", str(has_files)))
    (folder / "in").mkdir()
    for number in range(2):
        (folder / "in" / f"{number}.csv").write_text(f"id\n{number}\n")
        assert dagflow("launch", "shop.py", "--runner", "local", "--run-folder", "run", "--once").code == 0
        shutil.copy(folder / "shop.db", folder / f"{number}.db")


def test_a_run_folder_of_an_application_without_files(dagflow: Dagflow, tmp_path: Path) -> None:
    shop(dagflow, tmp_path, has_files=False)
    answer = dagflow("verify", "run")
    assert answer.code == 0
    assert "tables   not looked at: name the application with --app, or --trust" in answer.out
    answer = dagflow("verify", "run", "--app", "shop.py")
    assert answer.code == 0
    assert f"table: the table 'sales' of {tmp_path}/shop.db: window 1 is its newest, as decided" in answer.out
    shutil.copy(tmp_path / "0.db", tmp_path / "shop.db")
    answer = dagflow("verify", "run", "--trust")
    assert answer.code == 1
    assert "clean, but not its tables" in answer.out
    assert "the record of its windows ends with window 0, and window 1 was published" in answer.err


def test_the_settings_of_a_named_application_are_those_of_the_launch_where_the_caller_trusts_them(
    dagflow: Dagflow, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(SHOP.replace("{has_files}", "False").replace('"sales"', 'conf["table"]'))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.csv").write_text("id\n0\n")
    launched = ("launch", "shop.py", "-D", "table=sold", "--runner", "local", "--run-folder", "run", "--once")
    assert dagflow(*launched).code == 0
    answer = dagflow("verify", "run", "--app", "shop.py")
    assert answer.code == 2
    assert "the setting `table` is missing" in answer.err
    assert "help: the run folder has the settings of its launch: --trust uses them, beside yours" in answer.err
    answer = dagflow("verify", "run", "--app", "shop.py", "--trust")
    assert "the table 'sold' of " in answer.out


@pytest.mark.parametrize("has_files", [False, True])
@pytest.mark.parametrize("command", ["log", "show"])
def test_commands_that_need_a_dataset_say_where_the_rows_of_a_run_are(
    command: str, has_files: bool, dagflow: Dagflow, tmp_path: Path
) -> None:
    shop(dagflow, tmp_path, has_files=has_files)
    answer = dagflow(command, "run")
    assert answer.code == 2
    if has_files:
        assert "error[DF289] run is a run folder, and has no ledger of its own" in answer.err
        assert f"\n  help: name an output folder of the run: `{tmp_path}/out`" in answer.err
        return
    assert "error[DF289] run is a run folder, whose application writes no files" in answer.err
    assert f"\n    table: the table 'sales' of {tmp_path}/shop.db\n  help: `dagflow report run` shows its windows" in answer.err


def test_tables_beside_a_dataset(dagflow: Dagflow, tmp_path: Path) -> None:
    shop(dagflow, tmp_path, has_files=True)
    assert "\n  tables " not in dagflow("verify", "out").out
    assert dagflow("verify", "out", "--app", "shop.py").code == 0
    shutil.copy(tmp_path / "0.db", tmp_path / "shop.db")
    answer = dagflow("verify", "out", "--app", "shop.py", "--json")
    assert answer.code == 1
    [sink] = json.loads(answer.out)["sinks"]
    assert (sink["sink"], sink["ok"]) == ("table", False)


def test_windows_need_a_replay(dagflow: Dagflow, tmp_path: Path) -> None:
    sensors(tmp_path / "out")
    assert "--windows goes with --replay" in dagflow("verify", "out", "--windows", "1").err
