"""The meanings of Spark's exceptions."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from dagflow.errors import SparkLost
from dagflow.runtime.runner import TasksDied
from dagflow.spark.connection.failures import failure, first_line
from dagflow.spark.executors.check import Needs
from dagflow.spark.executors.probe import unfit_problem

KILLED = """An error occurred while calling o52.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 1.0 failed 4 times, \
most recent failure: Lost task 1.3 in stage 1.0 (TID 7) (127.0.0.1 executor driver): \
org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:620)

Driver stacktrace:"""
EXECUTOR = """[SPARK] Job aborted due to stage failure: Task 0 in stage 4.0 failed 1 times, most recent failure: \
Lost task 0.0 in stage 4.0 (TID 9) (127.0.0.1 executor 1): \
ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command exited with code 137
Driver stacktrace:"""
UNFIT = """Lost task 0.3 in stage 0.0: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/pyspark/serializers.py", line 460, in loads
    return cloudpickle.loads(obj, encoding=encoding)
ModuleNotFoundError: No module named 'dagflow'"""
VERSION = """pyspark.errors.exceptions.base.PySparkRuntimeError: \
[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, \
PySpark cannot run with different minor versions.
Please check environment variables"""


class Alive:
    """A link that lives, or does not."""

    address = "local[2,4]"

    def __init__(self, lost: bool = False) -> None:
        self.lost = lost

    def is_lost(self) -> bool:
        return self.lost


def told(text: str, lost: bool = False) -> Exception:
    link: Any = Alive(lost)
    return failure(RuntimeError(text), link, "app: window 7: reader → keep")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (KILLED, "Spark gave up after 4 attempts: Python worker exited unexpectedly (crashed)"),
        (
            EXECUTOR,
            "Spark gave up after 1 attempt: ExecutorLostFailure (executor 1 exited caused by one of the running tasks) "
            "Reason: Command exited with code 137",
        ),
        ("something new\nwith details", "something new"),
        ("", "RuntimeError"),
    ],
)
def test_what_may_pass(text: str, reason: str) -> None:
    error = told(text)
    assert type(error) is TasksDied
    assert str(error) == reason


def test_of_an_error_of_java_the_reason_is_told() -> None:
    text = (
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
        ": org.apache.spark.SparkException: spark.dynamicAllocation.schedulerBacklogTimeout must be > 0!\n"
        "\tat org.apache.spark.ExecutorAllocationManager.validateSettings(ExecutorAllocationManager.scala:203)"
    )
    assert first_line(RuntimeError(text)) == "spark.dynamicAllocation.schedulerBacklogTimeout must be > 0!"


def test_of_an_error_of_grpc_the_details_are_told() -> None:
    class RpcError(Exception):
        def details(self) -> str:
            return "failed to connect to all addresses; last error: Connection refused"

    assert first_line(RpcError("<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = UNAVAILABLE")) == (
        "failed to connect to all addresses; last error: Connection refused"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (UNFIT, "it has no module dagflow"),
        (VERSION, "Python in worker has different version: 3.9 than that in driver: 3.11"),
        ('java.io.IOException: Cannot run program "/no/python3": error=2, No such file', "there is no program /no/python3"),
    ],
)
def test_a_python_that_is_not_fit_is_no_matter_of_tries(text: str, reason: str) -> None:
    problem = unfit_problem(text, Needs())
    assert problem is not None
    assert problem.text.startswith(f"the Python of the tasks: {reason}")
    assert problem.remedy.endswith(f"export PYSPARK_PYTHON=/path/to/python{sys.version_info[0]}.{sys.version_info[1]}")


def test_a_users_missing_module_is_the_users() -> None:
    text = "ModuleNotFoundError: No module named 'dagflows_friend'"
    assert type(told(text)) is TasksDied
    assert unfit_problem(text, Needs()) is None


def test_a_lost_session_names_what_ran() -> None:
    error = told("[Errno 111] Connection refused", lost=True)
    assert isinstance(error, SparkLost)
    assert str(error) == (
        "Spark at local[2,4] has ended while it worked on 'app: window 7: reader → keep': [Errno 111] Connection refused\n"
        "  help: launch again to resume from there (from a new Python process, or a restarted notebook kernel)"
    )
