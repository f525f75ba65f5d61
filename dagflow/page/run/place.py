"""The run folder and the datasets of a run, by a path that a user has at hand."""

from __future__ import annotations

from contextlib import suppress

import attrs

from dagflow.ledger.dataset.find import find_dataset
from dagflow.ledger.errors import LedgerCut, LedgerMissing, NoSuchDataset
from dagflow.lineage.errors import RunFolderMissing
from dagflow.lineage.history import run_folder_of
from dagflow.page.errors import NoRun
from dagflow.runtime.run_folder.layout import DECISION, EVENTS, LAUNCH, PLAN
from dagflow.storage import OWN_FOLDER, absolute, base_name, explained, file_system, inside, join


@attrs.frozen
class RunPlace:
    """The folders of a run. `run_folder`: None where it cannot be found; `why_not` then says why."""

    output: str
    run_folder: str | None
    datasets: tuple[str, ...] = ()
    why_not: str | None = None


def find_run(place: str) -> RunPlace:
    """Return the run that an output folder, a path in it, or a run folder belongs to.

    Raises NoRun where there is nothing of a run, StorageError.
    """
    folder = absolute(place)
    with explained(folder, "looking for a run"):
        return _find(folder)


def _find(folder: str) -> RunPlace:
    if _is_run_folder(folder):
        return RunPlace(folder, folder, (folder[: -len(OWN_FOLDER) - 1],) if base_name(folder) == OWN_FOLDER else ())
    inner = inside(folder, OWN_FOLDER)
    if _is_run_folder(inner):
        return RunPlace(folder, inner, (folder,))
    with suppress(RunFolderMissing):
        if file_system(folder).exists(inner) and _is_run_folder(owner := run_folder_of(folder)):
            return RunPlace(folder, owner, (folder,))
    try:
        dataset = find_dataset(folder)
    except NoSuchDataset as error:
        if error.dataset is None:
            raise NoRun(folder, "there is no such file or folder", error.near) from error
        raise NoRun(folder, f"there is no such file or folder in {error.dataset}", error.dataset) from error
    except LedgerMissing as error:
        raise NoRun(folder, "it has neither a ledger nor a run folder", error.below) from error
    except LedgerCut as error:
        raise NoRun(folder, error.message().splitlines()[0]) from error
    try:
        return RunPlace(dataset, run_folder_of(dataset), (dataset,))
    except RunFolderMissing as error:
        return RunPlace(dataset, None, (dataset,), error.message())


def _is_run_folder(folder: str) -> bool:
    system = file_system(folder)
    return any(system.exists(join(folder, kind.folder)) for kind in (PLAN, DECISION, LAUNCH, EVENTS))
