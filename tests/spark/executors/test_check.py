"""The check of executors: what they lack, in words, with a remedy each."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import cloudpickle
import pytest

from dagflow import DAG
from dagflow.errors import ExecutorsUnfit, LocalPathRemoteMaster
from dagflow.planning.steps import make_plan
from dagflow.runtime.run_folder.folders import refuse_local_paths
from dagflow.spark.executors import look as module_of_look
from dagflow.spark.executors.check import (
    ExecutorUnfit,
    Facts,
    Guard,
    Mark,
    Needs,
    Problem,
    facts_of,
    problems_of,
    table,
    told_problems,
    unfit_folders,
)
from dagflow.spark.executors.look import look
from dagflow.spark.executors.probe import needs_of
from dagflow.storage import local_path
from operators import DeltaWriter, FileInput, IcebergWriter, SqlWriter

NEEDS = Needs(
    python="3.11.7",
    packages={"dagflow": "0.1.0", "pyarrow": "21.0.0", "PyYAML": "6.0"},
    modules={"dagflow.tasks": "dagflow", "yaml": "PyYAML", "own": ""},
)
FACTS = Facts(
    host="b",
    folder="/w/1",
    python="3.11.2",
    executable="/usr/bin/python3",
    java="17.0.12",
    clock=1000.0,
    packages={"dagflow": "0.1.0", "pyarrow": "20.0.0", "PyYAML": None},
    broken={},
    folders={},
)
PIP = "/usr/bin/python3 -m pip install"


@pytest.mark.parametrize(
    ("facts", "text", "remedy"),
    [
        (
            {"python": "3.9.1"},
            "Python 3.9.1 (/usr/bin/python3); the driver has 3.11.7",
            "launch with --package, which sends the libraries of this Python, so that hosts need only a Python 3.11; "
            "or install Python 3.11 and dagflow on every host, and name it: export PYSPARK_PYTHON=/path/to/python3.11",
        ),
        (
            {
                "packages": {"dagflow": None, "pyarrow": "20"},
                "broken": {"dagflow.tasks": "ModuleNotFoundError: No module named 'dagflow'"},
            },
            "dagflow is not installed for /usr/bin/python3",
            f"{PIP} 'dagflow==0.1.0'; or launch with --package",
        ),
        (
            {"packages": {"dagflow": "0.0.9", "pyarrow": "20"}},
            "dagflow 0.0.9; the driver has 0.1.0",
            f"{PIP} 'dagflow==0.1.0'; or launch with --package",
        ),
        (
            {"packages": {"dagflow": "0.1.0", "pyarrow": "12.0.1"}},
            "pyarrow 12.0.1; dagflow needs pyarrow>=18",
            f"{PIP} 'pyarrow==21.0.0'; or launch with --package",
        ),
        (
            {"broken": {"dagflow.tasks": "ModuleNotFoundError: No module named 'attrs'"}},
            "cannot import dagflow.tasks: ModuleNotFoundError: No module named 'attrs'",
            f"{PIP} 'dagflow==0.1.0'; or launch with --package",
        ),
        (
            {"broken": {"yaml": "ModuleNotFoundError: No module named 'yaml'"}},
            "PyYAML is not installed for /usr/bin/python3",
            f"{PIP} 'PyYAML==6.0'; or launch with --package --package-with PyYAML",
        ),
        ({"broken": {"own": "ValueError: no"}}, "cannot import own: ValueError: no", f"{PIP} 'own'"),
        (
            {"folders": {"run folder /data/_dagflow": "it is not there"}},
            "run folder /data/_dagflow: it is not there",
            "put the output on storage that all machines share, or name a run folder there: --run-folder …",
        ),
        (
            {"folders": {"output /data": "it cannot be written: Permission denied"}},
            "output /data: it cannot be written: Permission denied",
            "let the user of the executors write there",
        ),
        (
            {"clock": 1095.0},
            "the clock is 94 s ahead of the driver's",
            "sudo timedatectl set-ntp true, on both hosts",
        ),
        ({"clock": 900.0}, "the clock is 100 s behind the driver's", "sudo timedatectl set-ntp true, on both hosts"),
    ],
)
def test_each_problem_has_its_remedy(facts: dict[str, Any], text: str, remedy: str) -> None:
    found = list(problems_of(NEEDS, attrs.evolve(FACTS, **facts), 1000.0, 1001.0))
    assert found == [Problem("b, in /w/1", text, remedy)]


def test_an_executor_that_has_all_is_fine_also_without_metadata_of_a_library() -> None:
    assert list(problems_of(NEEDS, FACTS, 950.0, 1040.0)) == []


def test_a_look_names_what_is_missing_and_never_raises(tmp_path: Path) -> None:
    mark = Mark.leave(str(tmp_path))
    needs = Needs(modules={"json": "", "no.such": ""}, mark=mark, outputs=(str(tmp_path / "none"),), seconds=0.0)
    facts = facts_of(json.loads(look(needs.as_json())))
    assert facts.broken == {"no.such": "ModuleNotFoundError: No module named 'no'"}
    assert facts.folders == {f"output {tmp_path / 'none'}": "it is not there"}
    assert list(problems_of(attrs.evolve(needs, modules={}), attrs.evolve(facts, broken={}, folders={}))) == []
    assert [file.name for file in (tmp_path / "probe").iterdir()] == [os.path.basename(mark.name)]
    assert Needs.from_json(needs.as_json()) == needs


@pytest.mark.skipif(not os.path.exists("/proc/self/exe"), reason="the programs of other processes are not told here")
def test_a_look_names_the_java_above_it(tmp_path: Path) -> None:
    """By a shell that is called java, and a process between, as the daemon of Python workers is."""
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath("/bin/sh"), home / "bin" / "java")
    script = "from dagflow.spark.executors.look import _java; print(_java())"
    between = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}])"]
    command = [str(home / "bin" / "java"), "-c", f"{shlex.join(between)}; true"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "\n"
    (home / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="17.0.12"\n')
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "17.0.12\n"


def test_the_folders_of_tables_are_marked_and_looked_at(tmp_path: Path) -> None:
    table = tmp_path / "table"
    needs = Needs(tables=(str(table),), modules={}, seconds=0.0).marked(None)
    assert Needs.from_json(needs.as_json()) == needs
    assert facts_of(json.loads(look(needs.as_json()))).folders == {}
    (hidden,) = (table / "_dagflow" / "probe").iterdir()
    hidden.write_text("of another folder")
    facts = facts_of(json.loads(look(needs.as_json())))
    assert facts.folders == {f"table {table}/": "another one is there"}
    (problem,) = problems_of(needs, attrs.evolve(facts, packages=needs.packages))
    assert problem.remedy == "put the table, and what its tasks stage, on storage that all machines share"
    needs.remove_marks()
    assert list(table.iterdir()) == [], "nothing is left beside the table"


@pytest.mark.parametrize(
    "reason", ["Unable to locate credentials", "Forbidden", "Access Denied", "An error occurred (403) when calling HeadObject"]
)
def test_a_lack_of_credentials_has_a_remedy_of_its_own(reason: str) -> None:
    facts = attrs.evolve(FACTS, folders={"output s3://results": f"it cannot be written: {reason}"})
    (problem,) = problems_of(NEEDS, facts)
    assert problem.remedy.startswith("give the executors the credentials of the driver")


def sinks(tmp_path: Path) -> list[Any]:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog/c.db", "warehouse": f"file://{tmp_path}/warehouse"}
    return [
        SqlWriter[Any](f"sqlite:///{tmp_path}/db/a.db", "t"),
        DeltaWriter[Any](str(tmp_path / "delta")),
        IcebergWriter[Any]("a.b", catalog),
    ]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_local_folders_of_tables_are_needed_and_refused_elsewhere(tmp_path: Path, number: int) -> None:
    dag = DAG()
    rows = dag.add_module("rows", FileInput("s3://logs"))
    dag.add_stream("all", rows.messages, dag.add_operator("sink", sinks(tmp_path)[number]).input)
    plan = make_plan(dag)
    folders = [["db"], ["delta"], ["warehouse/a.b", "catalog"]][number]
    assert [local_path(each) for each in needs_of(plan, None, 60.0).tables] == [str(tmp_path / each) for each in folders]
    with pytest.raises(LocalPathRemoteMaster, match="'sink'"):
        refuse_local_paths(plan, "spark://boss:7077")


@pytest.mark.parametrize(("content", "answer"), [("mine", ""), ("another", "another one is there"), (None, "it is not there")])
def test_a_mark_is_looked_for(tmp_path: Path, content: str | None, answer: str) -> None:
    mark = attrs.evolve(Mark.leave(str(tmp_path)), content="mine")
    if content is None:
        mark.remove()
    else:
        Path(mark.run_folder, mark.name).write_text(content)
    needs = attrs.asdict(Needs(mark=mark))
    assert unfit_folders(needs).get(f"run folder {tmp_path}", "") == answer


def test_a_look_travels_to_a_python_without_dagflow() -> None:
    """The function is pickled by value; the other Python has neither dagflow nor any other package."""
    cloudpickle.register_pickle_by_value(module_of_look)
    try:
        data = cloudpickle.dumps(look)
    finally:
        cloudpickle.unregister_pickle_by_value(module_of_look)
    site = os.path.dirname(os.path.dirname(cloudpickle.__file__))
    code = (
        f"import sys; sys.path.append({site!r}); import cloudpickle; sys.path.pop()\n"
        "import pickle; data = sys.stdin.buffer.read(); function = pickle.loads(data)\n"
        f"print(function({attrs.evolve(NEEDS, seconds=0.0).as_json()!r}))"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", code], input=data, capture_output=True, check=True)
    facts = facts_of(json.loads(ran.stdout))
    assert facts.packages["dagflow"] is None
    assert [problem.text.split(" for ")[0] for problem in problems_of(attrs.evolve(NEEDS, python=facts.python), facts)] == [
        "dagflow is not installed",
        "PyYAML is not installed",
        "cannot import own: ModuleNotFoundError: No module named 'own'",
    ]


def test_a_guard_tells_its_problems_through_the_text_of_an_exception(tmp_path: Path) -> None:
    mark = Mark.leave(str(tmp_path))
    guard = Guard.of(Needs(mark=mark))
    guard.check()
    mark.remove()
    guard.check()  # once in a process
    with pytest.raises(ExecutorUnfit) as raised:
        Guard.of(Needs(mark=attrs.evolve(mark, content="another [[one]]"))).check()
    text = f"PythonException: Traceback …\n{type(raised.value).__module__}.ExecutorUnfit: {raised.value}\n\n\tat org.apache…"
    [problem] = told_problems(text)
    assert problem.text == f"run folder {tmp_path}: it is not there"
    assert told_problems("ModuleNotFoundError: ExecutorUnfit") == ()


def test_the_error_is_a_table_of_problems_with_the_executors_that_have_them() -> None:
    problems = [Problem(f"host-{n}, in /w/{n}", "no pyarrow", "pip install pyarrow") for n in range(5)]
    error = ExecutorsUnfit("spark://boss:7077", tuple(table([*problems, Problem("host-9, in /w", "no disk", "buy one")])))
    assert error.exit_code == 3
    assert str(error) == (
        "executors of Spark at spark://boss:7077 cannot run the tasks of this application:\n"
        "  no pyarrow  (host-0, in /w/0; host-1, in /w/1; host-2, in /w/2; and 2 more)\n"
        "    help: pip install pyarrow\n"
        "  no disk     (host-9, in /w)\n"
        "    help: buy one"
    )
