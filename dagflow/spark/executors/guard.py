"""The check of an executor within a task, once in each process: of executors that have joined since the probe."""

from __future__ import annotations

import functools
import json
import re

import attrs

from dagflow.spark.executors.look import look
from dagflow.spark.executors.needs import Needs
from dagflow.spark.executors.problems import Problem, facts_of, problems_of

_TOLD = re.compile(r"ExecutorUnfit: (\[\[.*\]\])")
_MOST = 10  # problems that a task tells


class ExecutorUnfit(RuntimeError):
    """Ends a task before it begins. Spark tries the task again, and tells why when it gives up."""


@attrs.frozen
class Guard:
    """The needs of an application, as JSON, that a process has to meet before its first task."""

    needs: str

    @classmethod
    def of(cls, needs: Needs) -> Guard:
        """Return the guard of these needs."""
        return cls(attrs.evolve(needs, seconds=0.0).as_json())

    def check(self) -> None:
        """Raise ExecutorUnfit. A process that has met the needs looks no more."""
        _check(self)


@functools.cache
def _check(guard: Guard) -> None:
    facts = facts_of(json.loads(look(guard.needs)))
    found = list(problems_of(Needs.from_json(guard.needs), facts))
    if found:
        raise ExecutorUnfit(json.dumps([attrs.astuple(problem) for problem in found[:_MOST]]))


def told_problems(text: str) -> tuple[Problem, ...]:
    """Return the problems that the text of an exception tells, none if it is not about that.

    >>> told_problems('PythonException: … dagflow.spark.executors.guard.ExecutorUnfit: [["b", "no pandas", "pip"]]')
    (Problem(place='b', text='no pandas', remedy='pip'),)
    """
    told = _TOLD.search(text)
    return tuple(Problem(*each) for each in json.loads(told[1])) if told is not None else ()
