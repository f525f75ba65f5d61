from pathlib import Path

from app import Settings, Words, populate_dag

from dagflow import ReaderRecord
from dagflow.testing import check_cuts, run_dag, run_operator


def test_words_are_in_lower_case() -> None:
    lines = [ReaderRecord(0, 0, "To be, or not to be?")]
    assert run_operator(Words(min_length=3), {"input": lines})["output"] == ["not"]


def test_the_application(tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("To be\nor not to be\n")
    run_dag(populate_dag, Settings(input=[str(book)], output=str(tmp_path / "out")))
    rows = [line for path in tmp_path.glob("out/current/part-*") for line in path.read_text().splitlines()]
    assert sorted(rows) == ["be,2", "key,value", "not,1", "or,1", "to,2"]


def test_results_do_not_depend_on_how_the_input_is_cut() -> None:
    files = {"in/a.txt": "To be\nor not\n", "in/b.txt": "to be\n"}
    check_cuts(populate_dag, {"input": ["{home}/in"], "output": "{home}/out"}, files, cuts=3)
