"""Rules between the properties of an operator: `check()` collects all that are broken, not only the first.

A rule about one property is a validator of its field, which refuses a value when it is set. A rule about several properties, or
one that waits until the DAG is checked, stands in `check()`, in one form:

    def check(self) -> None:
        with all_problems(super().check) as problems:
            if self.min_readers > self.max_readers:
                problems.append(f"min_readers is {self.min_readers}, more than max_readers = {self.max_readers}")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dagflow.errors import DagflowError


class PropertyProblems(ValueError):
    """The properties of an operator have several problems; `problems` are the texts."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n  and ".join(problems))
        self.problems = problems


@contextmanager
def all_problems(*checks: Callable[[], object]) -> Iterator[list[str]]:
    """Give a list of the problems that `checks` raise, for more of them. At the end raise ValueError with all of them.

    >>> with all_problems() as problems:
    ...     problems.append("min is -1, and must be at least 0")
    ...     problems.append("path is empty")
    Traceback (most recent call last):
    ...
    operators.problems.PropertyProblems: min is -1, and must be at least 0
      and path is empty
    """
    problems = [text for check in checks for text in problems_of(check)]
    yield problems
    if problems:
        raise PropertyProblems(tuple(problems))


def below_one(operator: object, *names: str) -> list[str]:
    """Return the problems with limits that may be left out, and are less than 1."""
    limits = {name: getattr(operator, name) for name in names}
    return [
        f"{name} is {limit}, and must be at least 1 (leave it out for the default)"
        for name, limit in limits.items()
        if limit is not None and limit <= 0
    ]


def problems_of(check: Callable[[], object], prefix: str = "") -> list[str]:
    """Return the problems that a check raises, each text after `prefix`; errors of the framework are raised.

    >>> def check():
    ...     raise ValueError("files is empty")
    >>> problems_of(check, "scanner.")
    ['scanner.files is empty']
    """
    try:
        check()
    except DagflowError:
        raise
    except ValueError as error:
        return [prefix + text for text in getattr(error, "problems", (str(error),))]
    return []
