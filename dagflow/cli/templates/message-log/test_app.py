from pathlib import Path

from app import Click, Clicks, Settings, populate_dag

from dagflow import ReaderRecord
from dagflow.ledger import read_dataset
from dagflow.testing import check_cuts, run_dag, run_operator


def test_robots_are_left_out() -> None:
    texts = ['{"page": "/", "user": "ada"}', '{"page": "/", "user": "crawler", "robot": true}']
    messages = [ReaderRecord(0, offset, text) for offset, text in enumerate(texts)]
    assert run_operator(Clicks(), {"input": messages})["output"] == [Click("/", "ada", 0)]


def test_the_application(tmp_path: Path) -> None:
    clicks = tmp_path / "clicks.jsonl"
    clicks.write_text('{"page": "/", "user": "ada"}\nnot JSON\n')
    run_dag(populate_dag, Settings(input=[str(clicks)], output=str(tmp_path / "out")))
    rows = read_dataset(str(tmp_path / "out")).to_table().to_pylist()
    assert rows == [{"page": "/", "user": "ada", "position": 0}]


def test_results_do_not_depend_on_how_the_input_is_cut() -> None:
    files = {"in/a.jsonl": '{"page": "/", "user": "ada"}\n', "in/b.jsonl": '{"page": "/help", "user": "bob"}\n'}
    check_cuts(populate_dag, {"input": ["{home}/in"], "output": "{home}/out"}, files, cuts=3)
