"""Commits whose answer does not say what has happened: the table itself is asked, before anything is cleaned up.

A conflict does not prove that a commit was refused. Where a client or a proxy sends a request twice, since the first answer was
lost or slow, the answer is that to the second one: a conflict with the first, which is in the table. `pyiceberg` believes that
answer, and removes the manifests of the commit. The table would then name files that are gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import attrs

from operators.extras.tables import pyiceberg


@attrs.frozen
class LandedCommits:
    """A catalog that looks for a commit in the table when the answer says that it failed.

    Stands for the catalog of a table during a commit. Whatever else is asked for, the catalog itself answers.
    """

    catalog: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.catalog, name)  # the protocol of a catalog is the class of `pyiceberg`, with some thirty methods

    def commit_table(self, table: Any, requirements: Sequence[Any], updates: Sequence[Any]) -> Any:
        """Commit, and return the answer; if that is an error, and the commit is in the table, the table as it is.

        Raises CommitFailedException only if the commit can never get into the table: `pyiceberg` then removes its manifests.
        CommitStateUnknownException: it may.
        """
        exceptions = pyiceberg("IcebergWriter").exceptions
        try:
            return self.catalog.commit_table(table, requirements, updates)
        except Exception as error:
            snapshots = [each.snapshot.snapshot_id for each in updates if each.action == "add-snapshot"]
            if not snapshots:
                raise  # a commit without manifests
            now = None
            with contextlib.suppress(Exception):  # the answer stays unknown
                now = self.catalog.load_table(table.name())
            if now is not None and all(now.snapshot_by_id(each) is not None for each in snapshots):
                return pyiceberg("IcebergWriter").table.CommitTableResponse(
                    metadata=now.metadata, **{"metadata-location": now.metadata_location}
                )
            if isinstance(error, exceptions.CommitFailedException) and not _never(now, requirements, updates):
                text = f"the catalog says that the commit failed, and it may still get into the table: {error}"
                raise exceptions.CommitStateUnknownException(text) from error
            raise


def _never(now: Any, requirements: Sequence[Any], updates: Sequence[Any]) -> bool:
    """Return True if a commit that is not among the snapshots of a table can never get there, and never was.

    Its branch has another newest snapshot than the commit builds on, and the table does not have the properties that the commit
    sets: those of a window outlive its snapshot, which others may have expired.
    """
    if now is None:
        return False
    properties = [pair for each in updates if each.action == "set-properties" for pair in each.updates.items()]
    if properties and all(now.properties.get(name) == value for name, value in properties):
        return False
    references = now.metadata.refs
    bases = [(references.get(each.ref), each.snapshot_id) for each in requirements if each.type == "assert-ref-snapshot-id"]
    return any((None if reference is None else reference.snapshot_id) != base for reference, base in bases)
