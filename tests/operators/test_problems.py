"""All that is wrong with an operator's properties is told at once."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from dagflow import DAG
from dagflow.errors import EmptyDag, PropertyRefused
from dagflow.model.graph.checks import properties
from operators import BlockReader, FileSplitterInput, RecordWriter, TimeBasedDirectoryScanner
from operators.problems import all_problems, problems_of


@pytest.mark.parametrize(
    ("operator", "problems"),
    [
        (
            FileSplitterInput([], block_size=0, window_bytes=-1),
            ["block_size is 0", "window_bytes is -1", "files is empty"],
        ),
        (
            FileSplitterInput(
                ["x"],
                blocks_threshold=0,
                scanner=TimeBasedDirectoryScanner(file_pattern_regular_exp="(", ignore_file_pattern_regular_exp="*"),
            ),
            [
                "blocks_threshold is 0",
                "scanner.file_pattern_regular_exp is not a regular expression",
                "scanner.ignore_file_pattern_regular_exp is not a regular expression",
            ],
        ),
        (
            BlockReader(min_readers=0, max_readers=-1, encoding="utf-9"),
            ["min_readers is 0, but", "min_readers is 0, more than max_readers = -1", "encoding 'utf-9'"],
        ),
        (RecordWriter("", suffix="/x", encoding="utf-9"), ["path is empty", "suffix is '/x'", "encoding 'utf-9'"]),
        (RecordWriter("", encoding="ascii", terminator="é"), ["path is empty", "terminator 'é' cannot be written"]),
        (RecordWriter(""), ["path is empty"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_problem_is_told_in_order(operator: Any, problems: list[str]) -> None:
    dag = DAG()
    dag.add_operator("it", operator)
    (refused,) = properties(dag)
    assert isinstance(refused, PropertyRefused)
    told = refused.reason.split("\n  and ")
    assert [text[: len(start)] for text, start in zip(told, problems, strict=True)] == problems


def test_a_subclass_adds_its_own() -> None:
    @attrs.define
    class Named(RecordWriter[str]):
        def check(self) -> None:
            with all_problems(super().check) as problems:
                problems.append("mine")

    with pytest.raises(ValueError, match="path is empty: name the output folder\n  and mine"):
        Named("").check()


def test_errors_of_the_framework_go_their_way() -> None:
    def check() -> None:
        raise EmptyDag("x")

    with pytest.raises(EmptyDag):
        problems_of(check)
