from __future__ import annotations

import json
import pickle
import re

from dagflow.errors import BadDefinition, ConfigErrors, DagErrors, DuplicateName, EmptyDag, MissingSetting, OperatorFailed
from dagflow.render.errors import each, error_block, error_json, error_text
from dagflow.render.report import report_json
from dagflow.render.style import Style
from dagflow.runtime.run_report import RunReport
from operators.contexts import BadText


def test_one_error() -> None:
    error = DuplicateName(kind="stream", name="a", first="app.py:1", second="app.py:2")
    assert error_text(error) == (
        "error[DF001] two streams are called 'a'\n  first   app.py:1\n  second  app.py:2\n  help: give one of them another name"
    )


def test_several_errors_each_have_their_code() -> None:
    problems = DagErrors((EmptyDag("x"), ConfigErrors(errors=(BadDefinition(text="a"), MissingSetting(key="b")))))
    assert [e.code for e in each(problems)] == ["DF016", "DF211", "DF207"]
    text = error_text(problems)
    assert text.count("error[") == 3
    assert text.endswith("\n\n3 problems found")


def test_what_follows_the_first_line_is_indented() -> None:
    class Loose(EmptyDag):
        def message(self) -> str:
            return "first\nsecond\n    third"

    assert error_text(Loose("x")) == "error[DF016] first\n  second\n    third"


def test_sentences_are_wrapped_between_words_and_what_is_copied_is_not() -> None:
    rest = "  first   a/long/path of a column that readers compare\n    return int(record) or None  # a line of code that is long"
    text = f"a sentence that is wider than the terminal of the user\n{rest}\n  help: set it with -D 'key=a value'; launch again"
    assert error_block("DF001", text, Style(width=40)) == (
        "error[DF001] a sentence that is wider\n  than the terminal of the user\n"
        f"{rest}\n  help: set it with -D 'key=a value';\n        launch again"
    )
    assert error_block("DF001", text, Style()) == f"error[DF001] {text}"
    coloured = error_block("DF001", text, Style(width=40, colour=True))
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == error_block("DF001", text, Style(width=40))


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b" not in error_text(EmptyDag("x"))
    coloured = error_text(EmptyDag("x"), Style(colour=True))
    assert coloured.startswith("\x1b[1;31merror[DF016]\x1b[0m ")
    assert "  \x1b[36mhelp:\x1b[0m populate_dag" in coloured


def test_as_json_with_fields_but_without_traces() -> None:
    failed = OperatorFailed(operator="keep", doing="each()", error="ValueError: no", window=3, trace="Traceback …")
    (found,) = json.loads(json.dumps(error_json(failed)))
    assert (found["code"], found["class"], found["fields"]["window"]) == ("DF301", "OperatorFailed", 3)
    assert "trace" not in found["fields"]


def test_the_report_as_json_says_where_the_run_failed_also_after_a_journey() -> None:
    failed = BadText(path="a.txt", position=10, byte_offset=15, encoding="utf-8")
    failed.happened(operator="lines", window=3, path="wrong", position=None)
    failed.happened(operator="later", window=4)
    again = pickle.loads(pickle.dumps(failed))
    found = json.loads(json.dumps(report_json(RunReport(status="failed", error=str(failed)), again)))["error"]
    assert {name: found[name] for name in ("code", "class", "operator", "window", "path", "position")} == {
        "code": "DF312", "class": "BadText", "operator": "lines", "window": 3, "path": "a.txt", "position": 10,
    }  # fmt: skip
    assert found["message"] == str(failed)
    foreign = report_json(RunReport(status="failed", error="lost"), LookupError("lost"))["error"]
    assert foreign == {"code": None, "class": "LookupError", "message": "lost"}
    assert report_json(RunReport(status="done"))["error"] is None
