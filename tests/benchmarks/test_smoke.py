"""The benchmarks run: the cheapest of them, small, without Spark. How fast they are is no matter for tests."""

from __future__ import annotations

import random
import re

import pytest

from benchmarks.bursts.__main__ import MARK as BURSTS
from benchmarks.bursts.__main__ import main as bursts
from benchmarks.cold.__main__ import main as cold
from benchmarks.decisions import window
from benchmarks.decisions.__main__ import WITHIN
from benchmarks.decisions.__main__ import main as decisions
from benchmarks.decisions.arrivals import Range, day
from benchmarks.decisions.simulation import simulate
from benchmarks.exchange.__main__ import main as exchange
from benchmarks.ledger import delta
from benchmarks.ledger.__main__ import main as ledger
from benchmarks.ledger.delta import DeltaLog, is_there
from benchmarks.ledger.log import data_file
from benchmarks.ledger.ours import APP, OurLog
from benchmarks.lines.__main__ import MARK, main
from benchmarks.live.__main__ import OFF, ON, launched
from benchmarks.live.__main__ import main as live
from benchmarks.measurements import main as measurements
from benchmarks.page.__main__ import MARK as PAGE
from benchmarks.page.__main__ import main as page_of_runs
from benchmarks.report import marks
from benchmarks.rounds import Case, Contestant, DifferentOutput, Goal, Limit, compete
from benchmarks.scale.__main__ import MARK as SCALE
from benchmarks.scale.__main__ import main as scale
from benchmarks.scan.__main__ import main as scan
from benchmarks.state.__main__ import main as state
from benchmarks.state_at_scale import main as state_at_scale
from benchmarks.table import figures_table, goals_table
from dagflow.ledger import Ledger, fold
from dagflow.scaling import BacklogPartitioner, StatelessPartitioner, resized
from tests.page.browser import chromium

START, STOP = marks(MARK)
SLOW = """
import time
from operators import BlockReader, FileSplitterInput, Filter, RecordWriter

def slow(line):
    time.sleep(0.05)
    return line

def populate_dag(dag, conf):
    splitter = dag.add_operator("splitter", FileSplitterInput(files=conf["input"]))
    reader = dag.add_operator("reader", BlockReader())
    keep = dag.add_operator("keep", Filter(slow))
    writer = dag.add_operator("writer", RecordWriter(path=conf["output"]))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, keep.input)
    dag.add_stream("kept", keep.output, writer.input)
"""
SILENT = lambda text: None  # noqa: E731


def test_the_scanner_runs_and_its_tables_are_written_between_the_marks(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n{START}\nold figures\n{STOP}\nafter\n")
    assert main(["--quick", "--only", "scanner", "--disk", str(tmp_path), "--markdown", str(page)]) == 0
    assert "| a launch that finds nothing new |" in capsys.readouterr().out
    text = page.read_text()
    assert text.startswith("# Before\n")
    assert text.endswith("after\n")
    assert "old figures" not in text
    assert re.search(r"2,000 files found, filtered, planned: at most 5 s \| [\d.]+ s \| ", text)
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.md"], "inputs and outputs are removed"


def test_contestants_run_in_turn_and_only_rounds_after_the_warm_up_count():
    ran = []
    one = [Contestant(name, lambda n=name: ran.append(n) or float(len(ran))) for name in ("peer", "ours")]
    result = compete(Case("case", "a case", one), 2, SILENT)
    assert ran == ["peer", "ours"] * 3
    assert result.figures["peer"].values == (3.0, 5.0)
    assert result.figures["ours"].values == (4.0, 6.0)


def test_goals_are_judged_by_seconds_for_each_byte():
    peer = Contestant("peer", lambda: 6.0, size=300)
    ours = Contestant("ours", lambda: 1.0, size=100)
    goals = [
        Goal("ours", "peer", 2),
        Goal("ours", "peer", 2.5),
        Goal("ours", "peer", most=0.6),
        Limit("ours", 0.5),
        Goal("ours", "nobody", 2),
    ]
    result = compete(Case("case", "a case", [peer, ours], goals), 1, SILENT)
    assert [result.outcome(goal) for goal in goals] == [("2.00", True), ("2.00", False), ("0.50", True), ("1 s", False), None]
    assert goals_table([result]).count("**no**") == 2
    assert "| 2.00 |" in figures_table(result)


def test_different_outputs_are_refused():
    one = [Contestant(name, lambda: 1.0, check=lambda n=name: n) for name in ("peer", "ours")]
    with pytest.raises(DifferentOutput, match="ours"):
        compete(Case("case", "a case", one), 1, SILENT)


@pytest.mark.full  # whole commands
def test_whole_commands_do_the_same(tmp_path, capsys):
    assert cold(["--quick", "--only", "lines", "--disk", str(tmp_path)]) == 0
    assert "| dagflow, local runner |" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full  # whole commands
def test_launches_with_live_figures_and_without_do_the_same(tmp_path, capsys):
    assert live(["--quick", "--disk", str(tmp_path)]) == 0
    assert "with live figures: at most 1.01 of the time of without" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
@pytest.mark.parametrize("name", [ON, OFF])
def test_live_figures_are_off_where_they_should_be(tmp_path, name):
    """The tasks take a second, so the driver would send figures."""
    (tmp_path / "in.txt").write_text("line\n" * 40)
    (tmp_path / "slow.py").write_text(SLOW)
    launched(name, "local", tmp_path / "in.txt", tmp_path / "out", str(tmp_path / "slow.py"))
    events = "".join(path.read_text() for path in (tmp_path / "out" / "_dagflow" / "events").iterdir())
    assert ('"operator_progress"' in events) is (name == ON)


@pytest.mark.full
@pytest.mark.skipif(chromium() is None, reason="no Chromium on the path")
def test_the_page_is_measured(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("\n".join(marks(PAGE)))
    assert page_of_runs(["--quick", "--markdown", str(page)]) == 0
    assert "| 30 |" in capsys.readouterr().out
    assert "| 30 |" in page.read_text()


def test_windows_of_state_run(tmp_path, capsys):
    assert state(["--quick", "--known", "5e3", "--disk", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "a running count by integers, an update, 2,000 keys a window" in told
    assert "a window of 1,000 rows with 5,000 keys kept" in told
    assert "a window of 20 rows with 5,000 time windows open" in told
    assert list(tmp_path.iterdir()) == []


def test_state_at_scale_runs_beside_a_peer(tmp_path, capsys):
    """Both make the same, or it would end with an error."""
    assert state_at_scale(["--quick", "--only", "join", "--width", "40", "--disk", str(tmp_path)]) == 0
    assert "2,000 rows joined with as many, 40 bytes each: the most memory of a process" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_measurements_run_beside_a_peer(tmp_path, capsys):
    """All make the same, or it would end with an error."""
    assert measurements(["--quick", "--disk", str(tmp_path)]) == 0
    assert "dagflow, 2 slots: at most 0.6 of the time of dagflow" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_logs_are_built_resumed_and_committed_to(tmp_path, capsys):
    page = tmp_path / "page.md"
    assert ledger(["--quick", "--disk", str(tmp_path), "--markdown", str(page)]) == 0
    told = capsys.readouterr().out
    assert "Opened and resumed after 200 commits" in told
    assert "A commit after 200" in told
    assert "| dagflow, 10 commits | 6 objects |\n" in told
    assert "| dagflow, 200 commits | 6 objects |\n" in told
    assert ("Delta Lake: n/a" in page.read_text()) is not is_there()
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.md"]


def test_a_ledger_written_as_bytes_is_one_that_was_appended(tmp_path):
    log = OurLog(tmp_path / "dataset", durable=False)
    log.build(60)
    for number in range(60):  # those that were never written
        data_file(tmp_path / "dataset", number)
    found = Ledger.open(str(tmp_path / "dataset"))
    assert found.verify(files=False).is_clean
    assert found.resume() == fold(found.entries())
    assert (found.resume().windows[APP], found.resume().last_offset) == (59, 599)


@pytest.mark.full
@pytest.mark.skipif(not is_there(), reason="deltalake is not installed")
def test_a_log_of_delta_written_as_bytes_is_one_that_its_package_wrote(tmp_path, monkeypatch):
    by_package, written = DeltaLog(tmp_path / "one"), DeltaLog(tmp_path / "other")
    by_package.build(205)
    monkeypatch.setattr(delta, "BY_LIBRARY", 0)
    written.build(205)
    assert by_package.resume() == written.resume() == 204
    assert by_package.read()[:2] == written.read()[:2] == (8, 1)
    assert files_of(written) == files_of(by_package)
    written.append(1)
    assert written.resume() == 205


def files_of(log):
    import deltalake

    return sorted(uri.rpartition("/")[2] for uri in deltalake.DeltaTable(str(log.folder)).file_uris())


@pytest.mark.nightly
def test_an_hour_of_bursts_is_decided(tmp_path, capsys):
    page = tmp_path / "page.md"
    assert decisions(["--quick", "--markdown", str(page)]) == 0
    assert capsys.readouterr().out.count("| steady (the default) |") == 2
    assert page.read_text().count("| power_of_two (the original's) |") == 2


def test_simulated_windows_do_all_of_their_work():
    chance = random.Random(4)
    for _ in range(50):
        work = [Range(0.0, chance.uniform(0.01, 5), 1_000_000, 0.001) for _ in range(chance.randint(1, 40))]
        readers, slots = chance.randint(1, 12), chance.randint(1, 12)
        seconds = sum(each.seconds for each in work)
        longest = max(each.seconds for each in work)
        for stealing in WITHIN.values():
            found = window.run(work, readers, slots, stealing=stealing)
            assert found.tasks >= seconds - 1e-6
            assert seconds / min(readers, slots) - 1e-6 <= found.makespan <= seconds + found.steals * window.STEAL_COST + 1e-6
        assert window.run(work, 1, slots).makespan == pytest.approx(seconds)
        assert window.run(work, readers, slots, stealing=window.Stealing(is_on=False)).makespan >= longest - 1e-6


def test_a_straggler_is_helped():
    work = [Range(0.0, 30.0 if n == 0 else 1.0, 10_000_000, 0.001) for n in range(8)]
    alone, helped = (window.run(work, 8, 8, stealing=window.Stealing(is_on)).makespan for is_on in (False, True))
    assert alone == pytest.approx(30)
    assert helped < 1.15 * 37 / 8 + 0.5


def test_a_simulated_slow_record_is_asked_once(monkeypatch):
    work = [Range(0.0, 30.0 if n == 0 else 1.0, 1 if n == 0 else 10_000_000, 0.001) for n in range(8)]
    asked, steal_from = [], window.steal_from

    def counted(hand, *rest, **more):
        asked.append(hand.key)
        return steal_from(hand, *rest, **more)

    monkeypatch.setattr(window, "steal_from", counted)
    assert window.run(work, 8, 8).makespan == pytest.approx(30)
    assert sum(key.startswith("0:") for key in asked) == 1  # of the first block, during its one record


def test_readers_of_a_simulated_day_share_where_shipped_ones_would():
    class Seen:
        def define_partitions(self, partitions, context):
            shares.append(context.shares)
            return resized(partitions, 2)

    shares = []
    for stealing in WITHIN.values():
        simulate(day(10, 60.0), Seen(), 4, starts=False, stealing=stealing)
    assert shares == [True, False, True, True]


@pytest.mark.full
def test_more_readers_wait_less_and_cost_more():
    work = day(300, 600.0)
    few, many = (simulate(work, StatelessPartitioner(n), 50, starts=True) for n in (2, 50))
    assert few.backlog_seconds > many.backlog_seconds
    assert few.reader_seconds < many.reader_seconds
    following = simulate(work, BacklogPartitioner(1, 50), 50, starts=True)
    assert following.cost < min(few.cost, many.cost)
    assert following.changes > 0


@pytest.mark.full
def test_tables_are_scanned_by_all_who_are_there(tmp_path, capsys):
    page = tmp_path / "page.md"
    given = ["--quick", "--match", "line ends in quotes, 3 of 20", "--disk", str(tmp_path), "--markdown", str(page)]
    assert scan(given) == 0
    told = capsys.readouterr().out
    assert "| pyarrow, one process, two threads |" in told
    assert "| dagflow |" in told
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.md"], "inputs and outputs are removed"


@pytest.mark.full
def test_what_a_task_takes_is_measured(tmp_path, capsys):
    assert scan(["--quick", "--only", "memory", "--disk", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert len(re.findall(r"dagflow: at most 256 MiB \| \d+(?:\.\d+)? MiB \| yes", told)) == 3, told
    assert list(tmp_path.iterdir()) == [], "inputs and outputs are removed"


@pytest.mark.full
def test_words_are_counted_alike_by_both_forms(tmp_path, capsys):
    assert exchange(["--quick", "--only", "record", "--disk", str(tmp_path)]) == 0  # it compares what they make
    assert "| dagflow, plain Python for each record |" in capsys.readouterr().out
    assert not list(tmp_path.iterdir()), "inputs and outputs are removed"


@pytest.mark.full
def test_readers_go_up_and_down_with_bursts_of_files(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("\n".join(marks(BURSTS)))
    assert bursts(["--quick", "--runner", "local", "--markdown", str(page)]) == 0
    text = page.read_text()
    assert "xychart-beta" in text
    readers = [int(n) for n in re.search(r"line \[(.*)\]", text)[1].split(", ")]
    assert max(readers) > 1
    assert readers[0] == 1
    assert "readers_changed" in capsys.readouterr().out


@pytest.mark.full  # processes of their own
def test_the_driver_is_measured_at_scale(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("\n".join(marks(SCALE)))
    assert scale(["--quick", "--disk", str(tmp_path), "--markdown", str(page)]) == 0
    told = capsys.readouterr().out
    assert re.search(r"\| decide: [^|]+\| 2 \| 200 \|", told)
    assert "20 tasks decided in at most 2 s" in page.read_text()
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.md"]
