from pathlib import Path

from app import Settings, SlowRequests, populate_dag

from dagflow import ReaderRecord
from dagflow.testing import check_cuts, run_dag, run_operator


def test_a_request_at_the_limit_is_slow() -> None:
    lines = [ReaderRecord(0, 0, "GET /home 99"), ReaderRecord(0, 13, "GET /search 100")]
    assert run_operator(SlowRequests(limit=100), {"input": lines})["output"] == ["/search took 100 ms"]


def test_the_application(tmp_path: Path) -> None:
    log = tmp_path / "monday.log"
    log.write_text("GET /home 12\nGET /search 480\n")
    run_dag(populate_dag, Settings(input=[str(log)], output=str(tmp_path / "out")))
    written = [path.read_text() for path in tmp_path.glob("out/part-*")]
    assert written == ["/search took 480 ms\n"]


def test_results_do_not_depend_on_how_the_input_is_cut() -> None:
    files = {"in/a.log": "GET /home 12\nGET /search 480\n", "in/b.log": "GET /help 250\n"}
    check_cuts(populate_dag, {"input": ["{home}/in"], "output": "{home}/out"}, files, cuts=3)
