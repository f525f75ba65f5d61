"""Run events, by the file transport and over HTTP to a receiver. Its classes are made from the published schema."""

from __future__ import annotations

import datetime
import json
import os
import re
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagflow.errors import LineageNotConfigured, OperatorFailed, TelemetryPackageMissing
from dagflow.runtime import events
from operators import RecordWriter
from tests.telemetry.receiver import Receiver, receiver
from tests.telemetry.runs import run


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def collector() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(path))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def facets_in(value: Any) -> Iterator[dict[str, Any]]:
    """All facets of an event, wherever they are."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key in ("facets", "inputFacets", "outputFacets"):
                yield from each.values()
            yield from facets_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from facets_in(each)


def assert_valid(event: dict[str, Any]) -> None:
    """Check what the published schema requires of a run event, of datasets and of facets."""
    uri = r"[a-z][a-z0-9+.-]*:\S+"
    assert {"eventTime", "producer", "schemaURL", "run", "job"} <= set(event)
    assert datetime.datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert event["eventType"] in ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
    assert re.fullmatch(uri, event["producer"])
    uuid.UUID(event["run"]["runId"])
    for named in (event["job"], *event["inputs"], *event["outputs"]):
        assert isinstance(named["namespace"], str)
        assert isinstance(named["name"], str)
    for facet in facets_in(event):
        assert re.fullmatch(uri, facet["_producer"])
        assert re.fullmatch(uri, facet["_schemaURL"])
        assert not any(name.startswith("_") for name in set(facet) - {"_producer", "_schemaURL"})


def test_a_run_begins_and_is_complete(tmp_path: Path, log: Path) -> None:
    heard: list[events.Event] = []
    assert run(tmp_path, name="demo", subscribers=[heard.append]).report.warnings == []
    start, end = lines(log)
    for event in (start, end):
        assert_valid(event)
    assert [event["eventType"] for event in (start, end)] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("default", "demo")
    assert end["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    launch = next(event.launch for event in heard if isinstance(event, events.RunStarted))
    assert end["run"]["facets"]["dagflow_launch"]["launch"] == launch
    assert end["run"]["facets"]["dagflow_launch"]["windows"] == 1


def test_inputs_have_ranges_of_bytes_and_outputs_rows_and_hashes(tmp_path: Path, log: Path) -> None:
    report = run(tmp_path).report
    start, end = lines(log)
    for event in (start, end):
        (read,), (written,) = event["inputs"], event["outputs"]
        assert (read["namespace"], read["name"]) == ("file", str(tmp_path / "in"))
        assert (written["namespace"], written["name"]) == ("file", str(tmp_path / "out"))
    assert read["inputFacets"]["dagflow_files"]["files"] == [{"path": str(tmp_path / "in" / "a.txt"), "ranges": [[0, 4]]}]
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 2
    (file,) = written["outputFacets"]["dagflow_files"]["files"]
    assert (file["start"], file["stop"], file["size"]) == (0, 2, 4)
    assert re.fullmatch("blake3:[0-9a-f]{64}", file["hash"])
    assert [field["name"] for field in written["facets"]["schema"]["fields"]] == ["value"]
    ledger = written["facets"]["dagflow_ledger"]
    assert report.ledgers[str(tmp_path / "out")].startswith(f"{ledger['entry']} ({ledger['ledgerHash'][:15]}")
    assert written["facets"]["version"]["datasetVersion"] == ledger["ledgerHash"]


def test_a_run_that_fails_says_why_without_secrets(tmp_path: Path, log: Path) -> None:
    class Refusing(RecordWriter):
        def get_bytes_for_tuple(self, record: Any) -> bytes:
            raise ValueError("no such lines at ftp://ada:hush@host/")

    with pytest.raises(OperatorFailed):
        run(tmp_path, sink=Refusing(str(tmp_path / "out")))
    start, end = lines(log)
    assert_valid(end)
    assert [event["eventType"] for event in (start, end)] == ["START", "FAIL"]
    assert "no such lines at ftp://ada:***@host/" in end["run"]["facets"]["errorMessage"]["message"]
    assert "hush" not in log.read_text()


def test_a_run_that_fails_before_it_begins_has_a_start_too(tmp_path: Path, log: Path) -> None:
    from dagflow import launch
    from tests.conformance.apps import chain

    with pytest.raises(Exception, match="gone"):
        launch(chain(tmp_path / "gone", sink=RecordWriter(str(tmp_path / "out"))), runner="local", slots=1)
    assert [event["eventType"] for event in lines(log)] == ["START", "FAIL"]


def test_a_run_that_is_stopped_is_aborted(tmp_path: Path, log: Path) -> None:
    ended = run(tmp_path, once=False, window="10ms")
    ended.stop()
    ended.wait(20)
    events_sent = lines(log)
    assert events_sent[-1]["eventType"] == "ABORT"
    assert events_sent[-1]["job"]["facets"]["jobType"]["processingType"] == "STREAMING"


def test_a_long_run_reports_now_and_then(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagflow.telemetry.openlineage.RUNNING", 0.0)
    run(tmp_path)
    assert [event["eventType"] for event in lines(log)] == ["START", "RUNNING", "COMPLETE"]


def test_the_run_above_it_and_the_namespace_come_from_the_environment(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = str(uuid.uuid4())
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/daily.copy/{parent}")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "team")
    run(tmp_path)
    for event in lines(log):
        assert_valid(event)
        facet = event["run"]["facets"]["parent"]
        assert (facet["run"]["runId"], facet["job"]["namespace"], facet["job"]["name"]) == (parent, "airflow", "daily.copy")
        assert event["job"]["namespace"] == "team"


def test_events_go_to_a_url(tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", collector.url)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "hush")
    heard: list[events.Event] = []
    before = dict(os.environ)
    assert run(tmp_path, subscribers=[heard.append]).report.warnings == []
    assert dict(os.environ) == before
    assert [path for path, _ in collector.bodies] == ["/api/v1/lineage"] * 2
    assert [json.loads(body)["eventType"] for _, body in collector.bodies] == ["START", "COMPLETE"]
    (started,) = [event for event in heard if isinstance(event, events.RunStarted)]
    assert started.telemetry == [f"OpenLineage: run events by http to {collector.url}"]
    assert "hush" not in str(heard)


@pytest.mark.parametrize("kind", ["gone", "hanging"])
def test_a_receiver_that_does_not_answer_is_a_warning(
    tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    collector.delay = 20.0
    url = collector.url
    if kind == "gone":
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setenv("OPENLINEAGE_URL", url)
    monkeypatch.setattr("dagflow.telemetry.telemetry.CLOSING", 0.3)
    began = time.monotonic()
    report = run(tmp_path).report
    assert time.monotonic() - began < 5
    assert report.status == "done"
    late = "no answer within 0.3 s, so the last data is missing there. Check that the receiver runs."
    assert report.warnings == [f"OpenLineage: run events by http to {url}: {late}"]


def test_an_answer_that_refuses_the_event_is_one_warning(
    tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector.status = 400
    monkeypatch.setenv("OPENLINEAGE_URL", collector.url)
    (warning,) = run(tmp_path).report.warnings
    assert re.match("OpenLineage: HTTPError: 400 .*; the run continues", warning)


def test_a_wrong_configuration_is_an_error_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
    with pytest.raises(LineageNotConfigured, match="`url` key not passed"):
        run(tmp_path)
    assert not (tmp_path / "out").exists()
    assert run(tmp_path, openlineage="off").report.status == "done"


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dagflow.telemetry.openlineage", None)
    with pytest.raises(TelemetryPackageMissing, match=re.escape("pip install 'dagflow[openlineage]'")):
        run(tmp_path, openlineage="on")
