"""Removing unfinished uploads where the store allows it."""

from __future__ import annotations

from collections.abc import Callable

from dagflow.errors import DagflowError
from dagflow.storage.explain import explained
from dagflow.storage.open import file_system
from dagflow.storage.transient import is_transient


def remove_uploads(folder: str, is_stale: Callable[[str], bool]) -> str | None:
    """Remove the unfinished uploads to a folder. Return the reason if the store refuses, else None.

    They cost nothing but storage, so a run continues if it may not list or remove them. Transient errors are raised.
    """
    with explained(folder, "removing unfinished uploads"):
        try:
            file_system(folder).remove_uploads(folder, is_stale)
        except DagflowError:
            raise
        except (OSError, NotImplementedError) as error:
            if is_transient(error):
                raise
            return getattr(error, "strerror", None) or str(error) or type(error).__name__
    return None
