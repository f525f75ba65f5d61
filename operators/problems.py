"""Telling all that is wrong with an operator's properties, not only the first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dagflow.errors import DagflowError


class PropertyProblems(ValueError):
    """The properties of an operator have several problems; `problems` are the texts."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n  and ".join(problems))
        self.problems = problems


@contextmanager
def all_problems() -> Iterator[list[str]]:
    """Gives a list for texts of what is wrong, and raises ValueError with all of them at its end, if there are any.

    >>> with all_problems() as problems:
    ...     problems.append("min is -1, and must be at least 0")
    ...     problems.append("path is empty")
    Traceback (most recent call last):
    ...
    operators.problems.PropertyProblems: min is -1, and must be at least 0
      and path is empty
    """
    problems: list[str] = []
    yield problems
    if problems:
        raise PropertyProblems(tuple(problems))


@contextmanager
def told_in(problems: list[str], prefix: str = "") -> Iterator[None]:
    """Adds what a check within raises to `problems`, each text after `prefix`; errors of the framework go their way.

    >>> problems = []
    >>> with told_in(problems, "scanner."):
    ...     raise ValueError("files is empty")
    >>> problems
    ['scanner.files is empty']
    """
    try:
        yield
    except DagflowError:
        raise
    except ValueError as error:
        problems += [prefix + text for text in getattr(error, "problems", (str(error),))]
