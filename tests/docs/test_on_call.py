"""The alert rules of the page for those on call."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dagflow.render.explanations import explanations
from dagflow.runtime.events import OperatorProgress, RunEnded, RunStarted, WindowPlanned, WindowStarted
from dagflow.telemetry.figures import RunFigures
from dagflow.telemetry.metrics import METRICS

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "on-call.md").read_text(encoding="utf-8")
RULES = PAGE.split("```yaml\n")[1].split("```")[0]


def test_all_metrics_of_the_page_exist_with_the_labels_that_it_uses() -> None:
    names = set(re.findall(r"\bdagflow_\w+", PAGE))
    assert names <= {metric.name for metric in METRICS}
    by_name = {metric.name: {"application", *metric.labels} for metric in METRICS}
    for name, selector in re.findall(r"(dagflow_\w+)\{([^}]+)\}", RULES):
        assert set(re.findall(r"(\w+)[!=]", selector)) <= by_name[name]


def test_all_codes_of_the_page_exist() -> None:
    codes = set(explanations())
    assert set(re.findall(r"DF\d{3}", PAGE)) <= codes


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed: it comes with Prometheus")
def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    path.write_text(RULES)
    checked = subprocess.run(["promtool", "check", "rules", path], text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "8 rules found" in checked.stdout


STUCK = (
    RunStarted(at=0.0, application="demo", runner="local", run_folder="out/_dagflow", launch="x", slots=2, first_window=0),
    WindowPlanned(at=0.0, window=0, items=1, bytes=10, tasks=1),
    WindowStarted(at=0.0, window=0, round="r", tasks=1),
    OperatorProgress(at=1.0, operators={"keep": {"records_in": 5, "partitions": 1}}, running=1, backlog_bytes=2_000_000_000),
)


def figures_of(*status: str) -> dict[str, float]:
    """Return the series of a run whose window does not end, or that then ended with this status, by name and labels."""
    figures = RunFigures()
    for event in (*STUCK, *(RunEnded(at=3600.0, status=each, windows=0, seconds=3600.0) for each in status)):
        figures(event)
    series = {}
    for metric, samples in figures.samples():
        for labels, value in samples.items():
            pairs = [("application", "demo"), ("instance", "here"), *zip(metric.labels, labels, strict=True)]
            series[f"{metric.name}{{{','.join(f'{name}={json.dumps(text)}' for name, text in pairs)}}}"] = value
    return series


@pytest.mark.parametrize("status", ["done", "failed", "interrupted"])
def test_alerts_about_work_are_about_metrics_that_end_with_the_run(status: str) -> None:
    """The file for metrics stays when a run has ended. Its last figures are there until the next launch."""
    while_running = {metric.name for metric in METRICS if metric.while_running}
    left = {name.partition("{")[0] for name in figures_of(status)}
    for alert in ("DagflowNothingDecided", "DagflowBacklogGrows"):
        expression = RULES.split(f"alert: {alert}")[1].partition("expr: ")[2].splitlines()[0]
        condition = expression.split()[0]
        assert condition in while_running
        assert condition not in left


@pytest.mark.full
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed: it comes with Prometheus")
@pytest.mark.parametrize(("status", "then"), [("done", []), ("failed", ["DagflowRunFailed"]), ("interrupted", [])])
def test_alerts_about_work_end_with_the_run(tmp_path: Path, status: str, then: list[str]) -> None:
    working, ended = figures_of(), figures_of(status)
    values = {
        series: " ".join(
            f"{of[series]:.0f}x{minutes}" if series in of else f"_x{minutes}" for of, minutes in ((working, 59), (ended, 600))
        )
        for series in (*working, *(each for each in ended if each not in working))
    }
    names = re.findall(r"alert: (\w+)", RULES)
    at = {"20m": [], "50m": ["DagflowNothingDecided"], "90m": then, "10h": then}
    path = tmp_path / "test.yml"
    (tmp_path / "rules.yml").write_text(RULES)
    path.write_text(json.dumps({
        "rule_files": ["rules.yml"],
        "tests": [{
            "interval": "1m",
            "input_series": [{"series": series, "values": text} for series, text in values.items()],
            "promql_expr_test": [
                {"expr": "sort(count by (alertname) (ALERTS{alertstate='firing'}))", "eval_time": time,
                 "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names if name in firing]}
                for time, firing in at.items()
            ],
        }],
    }))  # fmt: skip
    checked = subprocess.run(["promtool", "test", "rules", path], text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
