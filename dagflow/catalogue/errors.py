"""Errors of the catalogue."""

from __future__ import annotations

from dagflow.errors import ConfigError
from dagflow.errors.base import error
from dagflow.errors.wording import did_you_mean


@error("DF218")
class NoSuchOperator(ConfigError, LookupError):
    """The catalogue does not have this name."""

    name: str
    known: tuple[str, ...]
    example = {"name": "Fliter", "known": ("Filter", "Map")}
    general_remedy = "`dagflow operators` lists the names"

    def message(self) -> str:
        near = did_you_mean(self.name.rpartition(".")[2], self.known)
        return f"there is no operator {self.name!r}.{near or ' `dagflow operators` lists the names.'}"
