"""apps/access_log: requests by status and by hour, beside plain Python, on both runners."""

from __future__ import annotations

import csv
import datetime
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from dagflow.testing import run_dag

APP = str(Path(__file__).parents[2] / "apps" / "access_log")
ZONES = [datetime.UTC, datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))]


def log(seed: int, count: int) -> tuple[list[str], Counter[str], Counter[str]]:
    """Lines, and how many there are of each status and hour."""
    chance, lines = random.Random(seed), []
    statuses, hours = Counter[str](), Counter[str]()
    for number in range(count):
        time = datetime.datetime(2026, 2, 28, 20, tzinfo=datetime.UTC) + datetime.timedelta(minutes=chance.randrange(600))
        status = chance.choice(["200", "200", "304", "404", "500"])
        written = time.astimezone(chance.choice(ZONES)).strftime("%d/%b/%Y:%H:%M:%S %z")
        lines.append(f'10.0.0.{number % 9} - - [{written}] "GET /p?q=\\"{number}\\" HTTP/1.1" {status} {number} "-" "A (b) c"')
        statuses[status] += 1
        hours[time.strftime("%Y-%m-%dT%H:00:00Z")] += 1
    return lines, statuses, hours


def newest(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in (folder / "current").glob("part-*"):
        for key, count in list(csv.reader(path.read_text().splitlines()))[1:]:
            found[key] = max(found.get(key, 0), int(count))
    return found


def launch(source: Path, output: Path, runner: str) -> Any:
    sizes = {"block_size": 3000, "operator.splitter.blocks_threshold": 5}
    return run_dag(APP, {"input": str(source), "output": str(output), **sizes}, runner=runner)


def test_requests_by_status_and_hour(runner: str, tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    lines, statuses, hours = log(1, 300)
    (source / "access.log.1").write_text("\n".join([*lines[:100], "no request at all", *lines[100:]]))
    report = launch(source, output, runner)
    assert report.windows > 1
    assert report.jobs == report.windows
    assert newest(output / "statuses") == statuses
    assert newest(output / "hours") == hours
    rejected = [json.loads(line) for path in (output / "rejects").glob("part-*") for line in path.read_text().splitlines()]
    assert [(row["raw"], row["position"]) for row in rejected] == [("no request at all", sum(len(x) + 1 for x in lines[:100]))]
    lines, more_statuses, more_hours = log(2, 50)
    (source / "access.log").write_text("\n".join(lines) + "\n")
    launch(source, output, "local")
    assert newest(output / "statuses") == statuses + more_statuses
    assert newest(output / "hours") == hours + more_hours
