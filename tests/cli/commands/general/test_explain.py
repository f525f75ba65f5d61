from __future__ import annotations

import json
from collections.abc import Callable

from tests.cli.conftest import Answer

Dagflow = Callable[..., Answer]


def test_a_code_is_explained(dagflow: Dagflow) -> None:
    answer = dagflow("explain", "DF016")
    assert answer.code == 0
    assert answer.out == (
        "DF016 EmptyDag  (exit code 2)\n\nThe application has no operators.\n\nExample\n"
        "  application 'demo' has no operators\n"
        "    help: populate_dag(dag, conf) adds them with dag.add_operator(name, operator)\n\n"
        "Remedy\n  populate_dag(dag, conf) adds them with dag.add_operator(name, operator)\n"
    )


def test_an_explanation_as_json(dagflow: Dagflow) -> None:
    found = json.loads(dagflow("explain", "DF431", "--json").out)
    assert (found["code"], found["name"], found["exit_code"]) == ("DF431", "UnknownScheme", 3)
    assert set(found) == {"code", "name", "cause", "example", "remedy", "exit_code"}


def test_without_a_code_all_are_listed(dagflow: Dagflow) -> None:
    lines = dagflow("explain").out.splitlines()
    assert lines[0].startswith("DF001  DuplicateName ")
    assert len(lines) == len(json.loads(dagflow("explain", "--json").out)) > 200


def test_an_unknown_code(dagflow: Dagflow) -> None:
    answer = dagflow("explain", "DF9999")
    assert answer.code == 2
    assert answer.err.endswith("there is no error 'DF9999'. `dagflow explain` lists all.\n")
    assert "Did you mean NoSuchOperator? `dagflow explain` lists all." in dagflow("explain", "NoSuchOperater").err
