"""Metrics on a port and in a file, read by Prometheus' own parser, and checked by promtool where it is there."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dagflow.errors import MetricsFileUnwritable, MetricsPortUnusable, OperatorFailed, TelemetryPackageMissing
from dagflow.launching.build import build
from dagflow.runtime.events import Event, EventStream, OperatorProgress, RunStarted, Warned
from dagflow.telemetry.figures import RunFigures
from dagflow.telemetry.metrics import METRICS
from dagflow.telemetry.prometheus import MetricsFile, MetricsServer
from operators import RecordWriter
from tests.conformance.apps import chain
from tests.telemetry.runs import run

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def families(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(text: str, name: str, **labels: str) -> float:
    samples = [each for family in families(text).values() for each in family.samples if each.name == name]
    (wanted,) = [each.value for each in samples if labels.items() <= each.labels.items()]
    return float(wanted)


def test_a_run_leaves_its_figures_in_a_file(tmp_path: Path) -> None:
    run(tmp_path, metrics_file=str(tmp_path / "demo.prom"), name="demo")
    text = (tmp_path / "demo.prom").read_text()
    assert value(text, "dagflow_run_status", application="demo", status="done") == 1
    assert value(text, "dagflow_windows_total", application="demo", status="decided") == 1
    assert value(text, "dagflow_written_records_total") == 2
    assert value(text, "dagflow_window_duration_seconds_count") == 1
    assert [path.name for path in tmp_path.glob("demo*")] == ["demo.prom"], "no temporary file is left"


def test_all_that_is_exported_is_in_the_table_and_on_the_page(tmp_path: Path) -> None:
    run(tmp_path, metrics_file=str(tmp_path / "demo.prom"))
    exported = {sample.name for family in families((tmp_path / "demo.prom").read_text()).values() for sample in family.samples}
    assert {re.sub("(?<=_seconds)_(bucket|count|sum)$", "", name) for name in exported} <= {metric.name for metric in METRICS}
    rows = [f"| `{m.name}` | {m.kind} | {', '.join(f'`{label}`' for label in m.labels)} | {m.help} |" for m in METRICS]
    on_page = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `dagflow_")]
    assert on_page == [row.replace("|  |", "| |") for row in rows]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed: it comes with Prometheus")
def test_promtool_accepts_the_metrics(tmp_path: Path) -> None:
    run(tmp_path, metrics_file=str(tmp_path / "demo.prom"))
    text = (tmp_path / "demo.prom").read_text()
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_the_port_serves_the_figures_of_now() -> None:
    figures = RunFigures()
    server = MetricsServer(figures, "demo", "127.0.0.1", 0)
    try:
        url = server.line.removeprefix("metrics at ")
        figures(Warned(text="look"))
        first = urllib.request.urlopen(url).read().decode()
        figures(Warned(text="look"))
        second = urllib.request.urlopen(url).read().decode()
    finally:
        server.close()
    assert [value(text, "dagflow_warnings_total", application="demo") for text in (first, second)] == [1, 2]
    assert "process_resident_memory_bytes" in second
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url)


def test_a_run_says_where_its_metrics_are(tmp_path: Path) -> None:
    heard: list[Event] = []
    run(tmp_path, metrics_port=0, metrics_file=str(tmp_path / "m.prom"), subscribers=[heard.append])
    (started,) = [event for event in heard if isinstance(event, RunStarted)]
    assert re.fullmatch(r"metrics at http://127\.0\.0\.1:\d+/metrics", started.telemetry[0])
    assert started.telemetry[1] == f"metrics in {tmp_path / 'm.prom'}"


def test_a_port_that_is_taken_is_an_error_before_the_run(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(MetricsPortUnusable, match=f"port {port}: Address already in use"):
            run(tmp_path, metrics_port=port)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("path", "reason"), [("gone/m.prom", "No such file"), ("in", "it is a folder")])
def test_a_file_that_cannot_be_written_is_an_error_before_the_run(tmp_path: Path, path: str, reason: str) -> None:
    with pytest.raises(MetricsFileUnwritable, match=reason):
        run(tmp_path, metrics_file=str(tmp_path / path))
    assert not (tmp_path / "out").exists()


def test_a_file_that_can_no_longer_be_written_warns_once_and_the_run_goes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dagflow.telemetry.prometheus.INTERVAL", 0.01)
    folder = tmp_path / "metrics"
    folder.mkdir()

    def take_away(event: Event) -> None:
        if isinstance(event, RunStarted):
            folder.rename(tmp_path / "elsewhere")
            time.sleep(0.1)

    report = run(tmp_path, metrics_file=str(folder / "m.prom"), subscribers=[take_away]).report
    assert report.status == "done"
    (warning,) = report.warnings
    assert re.search(r"metrics cannot be written to .*m\.prom: No such file or directory; the run continues", warning)


def test_a_file_has_always_one_whole_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagflow.telemetry.prometheus.INTERVAL", 0.0001)
    file = MetricsFile(RunFigures(), "demo", str(tmp_path / "m.prom"), pytest.fail)
    try:
        for _ in range(200):
            assert families((tmp_path / "m.prom").read_text())["dagflow_warnings"].samples[0].value == 0
    finally:
        file.close()


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "dagflow.telemetry.prometheus", None)
    with pytest.raises(TelemetryPackageMissing, match=re.escape("pip install 'dagflow[metrics]'")):
        run(tmp_path, metrics_port=0)


def test_an_exporter_that_hangs_delays_the_end_by_seconds_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from dagflow.config import RunSettings
    from dagflow.telemetry.telemetry import Telemetry

    class Hanging:
        line = "figures at nowhere"

        def close(self) -> None:
            threading.Event().wait(30)

    monkeypatch.setattr("dagflow.telemetry.telemetry.CLOSING", 0.1)
    heard: list[Event] = []
    events = EventStream(lambda: 0.0)
    events.subscribe(heard.append)
    plan = build(chain(tmp_path, sink=RecordWriter(str(tmp_path / "out")))).plan()
    began = time.monotonic()
    with Telemetry(RunSettings(), "demo", plan, events, {}, 0.0) as telemetry:
        telemetry._exporters = [Hanging(), Hanging()]
    assert time.monotonic() - began < 2
    texts = [event.text for event in heard if isinstance(event, Warned)]
    late = "no answer within 0.1 s, so the last data is missing there. Check that the receiver runs."
    assert texts == [f"figures at nowhere: {late}"] * 2


def test_figures_that_fail_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: RunFigures, event: Event) -> None:
        raise ValueError("no such figure")

    monkeypatch.setattr(RunFigures, "__call__", fail)
    report = run(tmp_path, metrics_file=str(tmp_path / "m.prom")).report
    assert report.status == "done"
    (warning,) = report.warnings
    assert "RunFigures raised an exception: ValueError: no such figure; it gets no further events" in warning


class Breaks(RecordWriter[Any]):
    """Raises for a line of `b`."""

    def get_bytes_for_tuple(self, record: Any) -> bytes:
        if record.record == "b":
            raise ValueError("no b")
        return b"x\n"


def test_a_run_that_fails_leaves_no_figures_of_work_that_goes_on(tmp_path: Path) -> None:
    heard: list[Event] = []
    options: dict[str, Any] = {"metrics_file": str(tmp_path / "m.prom"), "subscribers": [heard.append], "name": "demo"}
    with pytest.raises(OperatorFailed, match="no b"):
        run(tmp_path, sink=Breaks(str(tmp_path / "out")), **options)
    (last,) = [event for event in heard if isinstance(event, OperatorProgress)]
    assert last.operators["files"]["records_out"] == 1, "what the driver has planned is known"
    assert (last.running, heard[-1].kind) == (0, "run_ended")
    text = (tmp_path / "m.prom").read_text()
    assert value(text, "dagflow_run_status", status="failed") == 1
    assert value(text, "dagflow_windows_total", status="planned") == 1
    assert value(text, "dagflow_windows_total", status="decided") == 0
    assert value(text, "dagflow_discarded_seconds_total") > 0
    assert not families(text).keys() & {"dagflow_windows_in_flight", "dagflow_backlog_bytes", "dagflow_tasks_running"}


def test_the_figures_of_a_run_are_those_of_its_report(tmp_path: Path) -> None:
    report = run(tmp_path, metrics_file=str(tmp_path / "m.prom")).report
    text = (tmp_path / "m.prom").read_text()
    for name, own in report.operators.items():
        assert value(text, "dagflow_operator_input_records_total", operator=name) == own.records_in
        assert value(text, "dagflow_operator_output_records_total", operator=name) == own.records_out
    assert [each.labels["operator"] for each in families(text)["dagflow_operator_bytes"].samples] == ["lines"]
    assert value(text, "dagflow_operator_bytes_total", operator="lines") == 4
    assert value(text, "dagflow_tasks_total") == report.tasks
