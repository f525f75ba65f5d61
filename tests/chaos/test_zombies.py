"""A task that goes on after its job was cancelled."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cluster.places import APPLICATION, Begin, Place
from tests.cluster.waiting import held_by, until
from tests.local.processes import lives

SCRIPT = """
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from dagflow import launch
from dagflow.spark.connection.session import open_session

# a minute, so that the cancelled task lives longer than all that follows
spark, _ = open_session("zombies", "local[2,4]", None, {"spark.python.task.killTimeout": "60s", "spark.ui.enabled": "false"})
settings = {"input": "in", "output": "out"}
hold = Path(sys.argv[2])
run = launch(sys.argv[1], {**settings, "hold": str(hold)}, once=False)
while not list(hold.parent.glob("held.*")):
    time.sleep(0.05)
run.stop()
stopped = run.wait(30)
again = launch(sys.argv[1], settings).report
before = sorted(p.name for p in Path("out/_dagflow/staging").iterdir())
hold.unlink()  # now the first task goes on, writes its file and its report
deadline = time.monotonic() + 30
while not (after := sorted(p.name for p in Path("out/_dagflow/staging").iterdir())) and time.monotonic() < deadline:
    time.sleep(0.05)
time.sleep(0.5)
files = sorted(p.name for p in Path("out").iterdir())
third = launch(sys.argv[1], settings).report
print(json.dumps({
    "stopped": stopped.status, "again": [again.status, again.windows], "before": before, "after": after, "third": third.windows,
    "same": files == sorted(p.name for p in Path("out").iterdir()),
}))
spark.stop()
"""


@pytest.mark.nightly
@pytest.mark.chaos
@pytest.mark.spark
def test_what_a_zombie_on_spark_writes_is_never_seen_and_is_swept_later(place: Place, begin: Begin, tmp_path: Path) -> None:
    place.fill("before the end", "hold", "after that")
    hold = tmp_path / "held"
    hold.touch()
    script = place.folder / "script.py"
    script.write_text(SCRIPT)
    process = begin(sys.executable, str(script), str(APPLICATION), str(hold))
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    told = json.loads(out.splitlines()[-1])
    assert told["stopped"] == "interrupted"
    assert told["again"] == ["done", 1]
    assert told["before"] == []
    assert told["after"] != [], "the zombie has written"
    assert told["same"]
    assert told["third"] == 0
    assert place.found() == place.expected()
    assert place.left_over() == []
    assert list(place.output.glob("_dagflow/reports/*")) == []
    until(lambda: not any(map(lives, held_by(hold))), seconds=30)
