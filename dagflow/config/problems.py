"""Collecting errors, so that all that is wrong is reported together."""

from __future__ import annotations

from types import TracebackType

from dagflow.config.errors import ConfigErrors
from dagflow.errors import ConfigError, DagflowError


class Problems:
    """Errors found so far. As a context manager it takes in the ConfigError that its block raises.

    >>> from dagflow.config.errors import BadDefinition
    >>> problems = Problems()
    >>> with problems:
    ...     raise BadDefinition(text="output")
    >>> problems.raise_all()
    Traceback (most recent call last):
    dagflow.config.errors.BadDefinition: -D output has no `=` and no value
      write -D output=VALUE
    """

    def __init__(self) -> None:
        self.errors: list[DagflowError] = []

    def add(self, error: DagflowError) -> None:
        """Add one error, or the parts of several. An error that is known already is left out."""
        for part in error.errors if isinstance(error, ConfigErrors) else (error,):
            if not any(type(part) is type(known) and part.message() == known.message() for known in self.errors):
                self.errors.append(part)

    def extend(self, others: Problems) -> None:
        """Add all errors of another collection."""
        for error in others.errors:
            self.add(error)

    def raise_all(self) -> None:
        """Raise the error if there is one, ConfigErrors if there are several."""
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            raise ConfigErrors(errors=tuple(self.errors))

    def __enter__(self) -> Problems:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool:
        if isinstance(error, ConfigError):
            self.add(error)
            return True
        return False
